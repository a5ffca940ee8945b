"""Hosts that join over TLS, of desktops and of GPUs: do they lose or double anything, and what do they cost?

The server, two env hosts and two gpu hosts: networks, host names, checkouts and data folders of their own.
All hosts have joined over HTTPS: none has the server's database, Redis, keys or data folder. The gpu hosts
share the folder of checkpoints, nothing else; screenshots come to their trainers over HTTPS. Requests to the
policy server, and what ranks say to each other, go by TLS as well. Policy of 1 to 4: the task's oracle, so
that each trajectory which infrastructure leaves alone scores 1. In one run:

1. one machine: the server's own env workers, all slots there
2. joined: the same slots on two env hosts. 1 and 2 in turn, as often as there are pairs
3. joined, and the web stands still for 60 s in the middle (SIGSTOP: nothing answers, nothing is refused)
4. joined, and each env host is killed once in the middle and started again
5. First desk with three small steps, on all four hosts, to its end; who listens on the networks meanwhile
6. an experiment over both gpu hosts; the second one is killed once, then the first, and started again
7. five GRPO steps over recorded samples: ranks of two hosts, and two ranks of one

How 2 is judged: the machine's speed drifts by a tenth within minutes, so that one ratio of two phases says
little. Each pair gives a ratio of trajectories per hour; their mean is held against 0.85, and its standard
error stands beside it. Each installation is started for its run, gives every slot a desktop, and is stopped
afterwards: one that stood idle took 3 % (one machine) and 7 % (joined) of two cores, databases not counted,
which the other would lack. The result has what an idle one costs (`idle_share`), measured after each run.

Bar: in 1 to 4 each place ends with one scored trajectory of score 1, turns and screenshots complete, no
report refused; the mean ratio of 2 to 1 is at least 0.85. In 5 and 6 each step once, by both gpu hosts, no
place scored twice, no report refused; behind the links only policy server and ranks listen. In 7 loss and
gradient norm differ by 1e-5 at most.

    python -m benchmarks.many_hosts [--pairs 3] [--places 120] [--slots 4]
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks.finished_runs import load_and_speed
from benchmarks.many_hosts_gang import first_desk, lose_each, same_numbers
from benchmarks.many_hosts_pairs import JOINED, ONE, compare, one_machine
from benchmarks.many_hosts_parts import Server, run_places
from benchmarks.report import RESULTS, finish, print_table
from testing.joined_machine import processes_of
from testing.joined_site import JoinedSite, joined_site, running
from testing.private_installation import Instance
from testing.private_postgres import running_cluster
from testing.small_disk import NoGround

AWAY_S = 60.0


def web_away(deskhand: Instance) -> None:
    """The process that serves joined hosts stands still."""
    found = [one for one in processes_of(deskhand.folder) if "--ssl-certfile" in one.cmdline()]
    assert found, "no process serves joined hosts"
    for process in found:
        process.suspend()
    time.sleep(AWAY_S)
    for process in found:
        process.resume()


def faults(site: JoinedSite, server: Server, places: int, slots: int) -> dict[str, dict[str, Any]]:
    """Phases 3 and 4."""
    with running(site.server, *site.env_hosts):
        server.wait_for_workers(len(site.env_hosts))
        run_places(server, 2 * slots)  # all slots have desktops now
        return {
            "web away": run_places(server, places, lambda: web_away(site.server)),
            "hosts killed": run_places(server, places, *(host.restart for host in site.env_hosts)),
        }


def gpu_phases(site: JoinedSite, server: Server) -> dict[str, dict[str, Any]]:
    """Phases 5 to 7."""
    with running(*site.machines):
        found = {"First desk": first_desk(site, server), "gpu hosts killed": lose_each(site, server)}
    return found | {"the same numbers": same_numbers(site.gpu_links, site.folder)}


def measure_all(options: argparse.Namespace, folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """The pairs, and phases 3 to 7. Raises NoGround."""
    sizes = {"places": options.places, "slots": options.slots}
    with ExitStack() as stack:
        alone = stack.enter_context(one_machine(options.slots))
        cluster = stack.enter_context(running_cluster())
        database = {"DATABASE_URL": cluster.url}
        site = stack.enter_context(
            joined_site(folder, database, num_env_hosts=2, slots=options.slots, hidden=[cluster.folder])
        )
        compared = compare([alone], [site.server, *site.env_hosts], num_pairs=options.pairs, **sizes)
        server = Server(site.server.environment)
        return compared, faults(site, server, **sizes) | gpu_phases(site, server)


def print_phases(compared: dict[str, Any], phases: dict[str, dict[str, Any]]) -> None:
    names = ("places", "scored", "score_1", "incomplete", "refused", "wall_s", "per_hour", "passed")
    runs = [
        (f"{side} {number}", pair[side])
        for number, pair in enumerate(compared["pairs"], start=1)
        for side in (ONE, JOINED)
    ]
    header = ["phase", "places", "scored", "score 1", "incomplete", "refused", "wall s", "per hour", "passed"]
    print_table(
        header, [[phase, *(row.get(name, "") for name in names)] for phase, row in [*runs, *phases.items()]]
    )
    ratios = ", ".join(f"{pair['ratio']:.0%}" for pair in compared["pairs"])
    error = compared["standard_error"]
    print(
        f"joined : one machine = {ratios}; mean {compared['mean_ratio']:.1%}"
        f"{'' if error is None else f' ± {error:.1%}'}"
    )


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--pairs", type=int, default=3, help="of runs on one machine and on joined hosts")
    arguments.add_argument("--places", type=int, default=120, help="trajectories per run and per phase")
    arguments.add_argument("--slots", type=int, default=4, help="desktops in use at once, of all hosts")
    arguments.add_argument("--results", type=Path, default=RESULTS, help="folder for the result file")
    options = arguments.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # ends what it started
    before = load_and_speed()
    try:
        with tempfile.TemporaryDirectory(prefix="dh-many-", dir="/tmp") as folder:
            Path(folder).chmod(0o755)  # desk hosts go on as another user
            compared, phases = measure_all(options, Path(folder))
    except NoGround as exc:
        sys.stderr.write(f"many_hosts: {exc}\nIt has to run as root, with iproute2 installed.\n")
        return 2
    print_phases(compared, phases)
    passed = compared["passed"] and all(row["passed"] for row in phases.values())
    figures = {"joined to one machine": compared, "phases": phases, "slots": options.slots}
    return finish(
        "many_hosts", figures | {"load": [before, load_and_speed()]}, passed=passed, results=options.results
    )


if __name__ == "__main__":
    sys.exit(main())
