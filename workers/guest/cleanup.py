"""Bring a used desktop back to its skeleton: end what was started, wipe what was written.

All processes of a trajectory are descendants of the agent (it is their subreaper), so the process
table is enough to find them, whatever sessions or groups they moved to.
"""

import os
import shutil
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field

KILL_LIMIT_S = 4.0
"""A killed process still has to give back its memory, which takes its time on a busy machine."""


class NotCleaned(Exception):
    """Raised when something survives the cleaning; the desktop must be rebuilt."""


@dataclass
class CleanupReport:
    """What a cleaning did."""

    killed: int = 0
    removed: int = 0
    processes: list[str] = field(default_factory=list)
    """Names of what is left running, for the host's log."""


def process_table() -> dict[int, tuple[int, str, str]]:
    """pid -> (parent pid, state letter, name) of every visible process."""
    table = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/stat", encoding="utf-8", errors="replace") as file:
                text = file.read()
        except OSError:
            continue  # it ended between the listing and the read
        name, _, rest = text.rpartition(")")
        fields = rest.split()
        table[int(entry)] = (int(fields[1]), fields[0], name.partition("(")[2])
    return table


def descendants(root_pid: int) -> dict[int, str]:
    """Living descendants of a process: pid -> name. Zombies are left out."""
    table = process_table()
    found: dict[int, str] = {}
    frontier = {root_pid}
    while frontier:
        children = {pid for pid, (parent, _, _) in table.items() if parent in frontier}
        frontier = children - found.keys()
        found.update({pid: table[pid][2] for pid in frontier})
    return {pid: name for pid, name in found.items() if table[pid][1] not in "ZX"}


def kill_others(keep: set[int]) -> int:
    """SIGKILL every descendant outside `keep` until none is left. Returns how many. Raises NotCleaned."""
    me = os.getpid()
    killed: set[int] = set()
    deadline = time.monotonic() + KILL_LIMIT_S
    while True:
        others = [pid for pid in descendants(me) if pid not in keep]
        # Before the return, not only after a kill: what died since the last look is a zombie now.
        reap(keep)
        if not others:
            return len(killed)
        if time.monotonic() > deadline:
            raise NotCleaned(f"{len(others)} processes could not be ended")
        for pid in others:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
            killed.add(pid)
        time.sleep(0.002)


def reap(keep: set[int]) -> None:
    """Collect ended children that are not base processes (those are waited for by their owner)."""
    for pid, (parent, state, _) in process_table().items():
        if parent == os.getpid() and state == "Z" and pid not in keep:
            try:
                os.waitpid(pid, os.WNOHANG)
            except ChildProcessError:
                continue


def wipe(folder: str, keep: frozenset[str] = frozenset()) -> int:
    """Remove everything in a folder except the names in `keep`. Returns how many entries."""
    removed = 0
    with os.scandir(folder) as entries:
        found = [e for e in entries if e.name not in keep]
    for entry in found:
        removed += 1
        if entry.is_dir(follow_symlinks=False):
            remove_tree(entry.path)
        else:
            os.unlink(entry.path)
    return removed


def remove_tree(path: str) -> None:
    """Remove a folder even when its mode forbids it. Raises NotCleaned."""

    def open_up_and_retry(function: Callable[[str], object], failed_path: str, _exc_info: object) -> None:
        parent = os.path.dirname(failed_path)
        try:
            os.chmod(parent, 0o700)
            if os.path.isdir(failed_path) and not os.path.islink(failed_path):
                os.chmod(failed_path, 0o700)
                shutil.rmtree(failed_path)
            else:
                function(failed_path)
        except OSError as exc:
            raise NotCleaned(f"{failed_path} could not be removed: {exc}") from exc

    try:
        shutil.rmtree(path, onerror=open_up_and_retry)
    except RecursionError as exc:
        raise NotCleaned(f"{path} is nested too deeply to be removed") from exc
    if os.path.lexists(path):
        raise NotCleaned(f"{path} could not be removed")


def restore_skeleton(skeleton: str, home: str) -> None:
    """Copy the pristine HOME and check that nothing else is in it. Raises NotCleaned."""
    os.chmod(home, 0o700)
    shutil.copytree(skeleton, home, dirs_exist_ok=True, symlinks=True)
    if listing(home) != listing(skeleton):
        raise NotCleaned("HOME differs from the skeleton after the wipe")


def listing(folder: str) -> list[str]:
    """Sorted relative paths of everything below a folder."""
    return sorted(
        os.path.relpath(os.path.join(root, name), folder)
        for root, folders, files in os.walk(folder)
        for name in folders + files
    )
