"""Counts a desktop's processes from outside, by how many pid namespaces deep they live.

    0 of the desk host   1 agent, X server, window manager   2 evaluators' commands   3 programs

Nothing in a desktop has a say in it: the kernel's own record of a process is read.
"""

import contextlib
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from workers.desktops.contract import NotClean

LIMIT_S = 1.0
EVALUATORS, PROGRAMS = 2, 3
# One space in use and one made ahead: of each its first processes and its session bus.
MOST = {EVALUATORS: 2, PROGRAMS: 4}
# Of each space also launcher, bus and registry of accessibility.
ACCESSIBLE = {EVALUATORS: 2, PROGRAMS: 10}


def require_no_surplus(first: int, *, with_accessibility: bool = False) -> None:
    """Raises NotClean when processes of the last trajectory are left in the desktop of this first process."""
    deadline = time.monotonic() + LIMIT_S
    most = ACCESSIBLE if with_accessibility else MOST
    while found := surplus(first, most):
        if time.monotonic() > deadline:
            raise NotClean(f"counted from outside, processes are left: {found}")
        time.sleep(0.01)


def surplus(first: int, allowed: Mapping[int, int] = MOST) -> str:
    """What a clean desktop, whose first process this is, has too much of; "" when it is clean."""
    depths = Counter(_depth(pid) - _depth(first) for pid in descendants(first))
    over = [depth for depth, most in allowed.items() if depths[depth] > most]
    too_many = [f"{depths[depth]} at depth {depth}" for depth in over]
    return ", ".join(too_many + [f"{n} at depth {d}" for d, n in depths.items() if d > PROGRAMS])


def descendants(pid: int) -> list[int]:
    """Pids of all that live below it, at the cost of these alone: no other process of the machine is read."""
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in map(int, task.read_text().split()):
                found += [child, *descendants(child)]
    return found


def _depth(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/status").read_text(errors="replace").splitlines()
    except OSError:
        return 0  # it has just ended
    if any(line.startswith("State:\tZ") for line in lines):
        return 0
    return next((len(line.split()) - 1 for line in lines if line.startswith("NSpid:")), 0)
