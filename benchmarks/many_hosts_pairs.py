"""One machine and joined hosts in turn: the rates of runs that lie beside each other in time."""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psutil

from benchmarks.finished_runs import load_and_speed
from benchmarks.many_hosts_parts import Server, run_places
from benchmarks.vnc.rounds import family_cpu_s
from testing.joined_machine import JoinedMachine
from testing.joined_site import running
from testing.paths import REPOSITORY
from testing.private_installation import Instance
from testing.private_postgres import private_cluster

LEAST_SHARE = 0.85
NUM_ENV_WORKERS = 2
"""Of each installation."""
WARM_UP = 8
"""Places for each slot before a run."""
IDLE_S = 10.0
ONE, JOINED = "one machine", "joined"
Machines = Sequence[Instance | JoinedMachine]


@contextmanager
def one_machine(slots: int) -> Iterator[Instance]:
    """Set up, and stopped."""
    with private_cluster() as database:
        env = {"DATABASE_URL": database}
        with Instance(slots=slots, without=["gpu"], env=env) as deskhand:
            deskhand.manage("import_tasks", "first-desk")
            deskhand.stop()
            yield deskhand


def compare(alone: Machines, joined: Machines, *, num_pairs: int, places: int, slots: int) -> dict[str, Any]:
    """The pairs in turn, and the mean of their ratios with its standard error; the server is the first of
    each installation's machines."""
    pairs: list[dict[str, Any]] = []
    for number in range(1, num_pairs + 1):
        pair: dict[str, Any] = {"before": load_and_speed()}
        pair |= {ONE: measure(alone, places, slots), JOINED: measure(joined, places, slots)}
        pair["ratio"] = round(pair[JOINED]["per_hour"] / pair[ONE]["per_hour"], 3)
        pairs.append(pair)
        print(f"pair {number} of {num_pairs}: {pair['ratio']:.1%}", flush=True)
    return {"pairs": pairs} | judge(pairs)


def judge(pairs: list[dict[str, Any]]) -> dict[str, Any]:
    """The bar is on the mean; one pair has no standard error."""
    ratios = [pair["ratio"] for pair in pairs]
    mean = statistics.fmean(ratios)
    error = statistics.stdev(ratios) / len(ratios) ** 0.5 if len(ratios) > 1 else None
    whole = all(pair[side]["passed"] for pair in pairs for side in (ONE, JOINED))
    return {
        "mean_ratio": round(mean, 3),
        "standard_error": error if error is None else round(error, 3),
        "least_ratio": LEAST_SHARE,
        "passed": whole and mean >= LEAST_SHARE,
    }


def measure(machines: Machines, places: int, slots: int) -> dict[str, Any]:
    """One run of an installation that is started for it, and what it costs to stand idle afterwards."""
    deskhand = machines[0]
    assert isinstance(deskhand, Instance)
    with running(*machines):
        command = [sys.executable, "-m", "benchmarks.many_hosts_pairs"]
        command += ["--places", str(places), "--slots", str(slots)]
        # Django is set up once per process, for one installation.
        done = subprocess.run(
            command, cwd=REPOSITORY, env=deskhand.environment, check=True, stdout=subprocess.PIPE, text=True
        )
        return json.loads(done.stdout.splitlines()[-1]) | {"idle_share": idle_share(machines)}


def idle_share(machines: Machines) -> float:
    """Share of this machine's cores that an installation without work uses, its database not counted."""
    supervisors = [psutil.Process(one.process.pid) for one in machines if one.process]
    before, started = family_cpu_s(supervisors), time.monotonic()
    time.sleep(IDLE_S)
    took_s = time.monotonic() - started
    return round((family_cpu_s(supervisors) - before) / took_s / psutil.cpu_count(), 4)


def main() -> int:
    """Of a child process: on the installation of its environment."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--places", type=int, required=True)
    arguments.add_argument("--slots", type=int, required=True)
    options = arguments.parse_args()
    server = Server({})
    server.wait_for_workers(NUM_ENV_WORKERS)
    run_places(server, WARM_UP * options.slots)  # all slots have desktops, all processes what they load late
    sys.stdout.write(json.dumps(run_places(server, options.places)) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
