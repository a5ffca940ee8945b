"""Process groups: tied to their parent when they start, ended as a whole."""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path

KILL_LIMIT_S = 10.0
POLL_S = 0.01


def die_with_parent(argv: Iterable[str], signal_name: str = "TERM") -> list[str]:
    """The command, signalled by the kernel when the thread that started it ends."""
    return ["setpriv", "--pdeathsig", signal_name, "--", *argv]


def start_ticks(pid: int) -> int | None:
    """Start time of a process in clock ticks since boot; None when it has ended."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else int(fields[19])


def group_exists(group: int) -> bool:
    """Whether any process is in this group; while one is, its number is no new process's pid."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def end_group(group: int, *, grace_s: float = 0.0, leader: subprocess.Popen[bytes] | None = None) -> None:
    """SIGTERM, SIGKILL after `grace_s` (at once when it is 0), and wait until the leader has ended.

    `leader`: its handle when it is our own child, which has to be collected.
    """
    start = start_ticks(group)
    if grace_s > 0:
        _signal(group, signal.SIGTERM)
        deadline = time.monotonic() + grace_s
        while time.monotonic() < deadline and _has_members(group, leader):
            time.sleep(POLL_S)
    _signal(group, signal.SIGKILL)
    if leader is not None:
        leader.wait(timeout=KILL_LIMIT_S)
    deadline = time.monotonic() + KILL_LIMIT_S
    while start is not None and start_ticks(group) == start and time.monotonic() < deadline:
        time.sleep(POLL_S)


def _has_members(group: int, leader: subprocess.Popen[bytes] | None) -> bool:
    if leader is not None:
        leader.poll()  # an uncollected leader keeps its group
    return group_exists(group)


def _signal(group: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
