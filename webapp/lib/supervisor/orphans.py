"""Finds processes by the mark in their environment, whatever session or group they moved to.

Every process that the supervisor starts carries the mark, and so does all that it starts in turn. It is read
back from /proc, so nothing is ever ended because of its name or of a process id that was used again.
"""

import contextlib
import ctypes
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

MARKER = "DESKHAND_CHILD"
"""Holds `data folder|name|supervisor's pid.number of the start`."""
PR_SET_CHILD_SUBREAPER = 36


def become_subreaper() -> None:
    """Have the kernel hand us the children of a child that dies, so that they can be collected."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)


def marked() -> Iterator[tuple[int, str]]:
    """(pid, mark) of every process of this user that carries a mark."""
    prefix = f"{MARKER}=".encode()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            environment = (entry / "environ").read_bytes()
        except OSError:  # it ended meanwhile, or belongs to someone else
            continue
        for item in environment.split(b"\0"):
            if item.startswith(prefix):
                yield int(entry.name), item[len(prefix) :].decode(errors="replace")
                break


def kill_marked(is_ours: Callable[[str], bool]) -> int:
    """SIGKILL every process whose mark is ours, until none is left; returns how many there were."""
    killed: set[int] = set()
    while True:
        found = [pid for pid, mark in marked() if is_ours(mark) and pid != os.getpid() and pid not in killed]
        if not found:
            return len(killed)
        for pid in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        killed.update(found)


def sweep(data_dir: Path) -> int:
    """End what an earlier supervisor of this data folder left behind (it was killed); returns how many."""
    return kill_marked(lambda mark: mark.split("|")[0] == str(data_dir))


def reap(known: set[int]) -> None:
    """Collect adopted processes that have ended; `known` are our own children, which asyncio collects."""
    for entry in Path("/proc/self/task").iterdir():
        children = (entry / "children").read_text().split()
        for pid in map(int, children):
            if pid not in known:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, os.WNOHANG)
