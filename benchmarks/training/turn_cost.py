"""What a turn costs at first-desk size: turns per second, and CPU-seconds per turn of each kind of process.

Starts a private installation and evaluates the preset's model on its held-out tasks: rollouts on real
desktops and nothing else. Counts from the first `SKIPPED` turns on, so that no start is measured. CPU time
hardly depends on what else the machine does; turns per second do, so load and speed are recorded beside them.

Bar: at most `MAX_CPU_S` CPU-seconds per turn, desktops apart.

    python -m benchmarks.training.turn_cost [--turns 250]
"""

from __future__ import annotations

import argparse
import sqlite3
import sys
import time
from typing import Any

import psutil

from benchmarks.finished_runs import load_and_speed
from benchmarks.report import finish, print_table
from testing.experiment_runs import launch, settings
from testing.private_installation import Instance

SKIPPED = 30
MAX_CPU_S = 0.066
"""Half of the 0.131 that a turn cost before decoding was made lean (two cores, load 11, 152 turns)."""
LIMIT_S = 600.0
LOOK_S = 0.5
KINDS = (
    ("training.sampler.server", "policy server"),
    ("training.loop.train", "trainer"),
    ("-Q env", "env workers"),
    ("-Q gpu", "gpu worker"),
    ("dispatch", "dispatcher"),
    ("uvicorn", "web"),
    ("redis", "redis"),
)
"""Part of a command line -> what the process is; everything else is a desktop or its host."""


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--turns", type=int, default=250, help="how many are measured")
    options = arguments.parse_args()
    with Instance() as deskhand:
        figures = measure(deskhand, options.turns)
    rows = [(kind, f"{1000 * share:.1f}") for kind, share in figures["cpu_s_per_turn"].items()]
    print_table(
        ("process", "CPU ms per turn"), [*rows, ("all but desktops", f"{1000 * figures['cpu_s']:.1f}")]
    )
    print(f"{figures['turns_per_s']:.1f} turns/s over {figures['num_turns']} turns")
    return finish("turn_cost", figures, passed=figures["cpu_s"] <= MAX_CPU_S)


def measure(deskhand: Instance, wanted: int) -> dict[str, Any]:
    """Rates of the turns from number `SKIPPED` to `SKIPPED + wanted`. Raises TimeoutError."""
    changes = {"evaluation.only": True, "evaluation.num_tasks": 72, "evaluation.temperature": 1.0}
    launch(deskhand, "--preset", "first-desk", *settings(changes))
    deadline = time.monotonic() + LIMIT_S
    wait_for_turns(deskhand, SKIPPED, deadline)
    started, before, first = time.monotonic(), cpu_seconds(deskhand), num_turns(deskhand)
    wait_for_turns(deskhand, first + wanted, deadline)
    seconds, after, last = time.monotonic() - started, cpu_seconds(deskhand), num_turns(deskhand)
    turns = last - first
    shares = {kind: (after[kind] - before.get(kind, 0.0)) / turns for kind in sorted(after)}
    own = sum(share for kind, share in shares.items() if kind != "desktops")
    return {
        "num_turns": turns,
        "turns_per_s": turns / seconds,
        "cpu_s": own,
        "cpu_s_per_turn": shares,
        **load_and_speed(),
    }


def wait_for_turns(deskhand: Instance, count: int, deadline: float) -> None:
    """Until `count` turns are done. Raises TimeoutError."""
    while (done := num_turns(deskhand)) < count:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{done} of {count} turns after {LIMIT_S:.0f} s")
        time.sleep(LOOK_S)


def num_turns(deskhand: Instance) -> int:
    """Turns that are done. Read from the database itself: a process of ours would cost what is measured."""
    path = f"file:{deskhand.folder / 'deskhand.sqlite3'}?mode=ro"
    with sqlite3.connect(path, uri=True, timeout=30) as database:
        query = "SELECT count(*) FROM trajectories_turnrecord WHERE completed_at IS NOT NULL"
        return int(database.execute(query).fetchone()[0])


def cpu_seconds(deskhand: Instance) -> dict[str, float]:
    """Kind of process -> CPU seconds so far, ended children included."""
    assert deskhand.process is not None
    found: dict[str, float] = {}
    for process in psutil.Process(deskhand.process.pid).children(recursive=True):
        try:
            used, command = process.cpu_times(), " ".join(process.cmdline())
        except psutil.Error:
            continue
        kind = next((kind for part, kind in KINDS if part in command), "desktops")
        ended = used.children_user + used.children_system if kind == "desktops" else 0.0
        found[kind] = found.get(kind, 0.0) + used.user + used.system + ended
    return found


if __name__ == "__main__":
    sys.exit(main())
