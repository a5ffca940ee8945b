"""Pid records of several workers on one data folder: each ends what dead ones left, nothing of a live one.

    ROOT/OWNER/owner.lock    held (flock) as long as its owner lives; the kernel frees it at any death
    ROOT/OWNER/*.json        the owner's pid records

Owners are named NAME@HOST. Only those of the same machine are swept: the pids of others mean nothing here.
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from workers.processes.pid_records import PidRecords

CLAIM_LIMIT_S = 30.0
"""A worker that sweeps after a dead one holds its lock meanwhile."""
POLL_S = 0.1


class OwnerLives(Exception):
    """Raised when another process of the same name works on this data folder."""


class OwnedRecords:
    """One owner's records, and the right to sweep after the dead."""

    def __init__(self, root: Path, owner: str) -> None:
        self.records = PidRecords(root / owner)
        self._root, self._owner = root, owner
        self._held: int | None = None

    def claim(self, limit_s: float = CLAIM_LIMIT_S) -> None:
        """Be the owner until this process ends. Raises OwnerLives."""
        deadline = time.monotonic() + limit_s
        while self._held is None:
            self._held = _lock(self._root / self._owner)
            if self._held is None and time.monotonic() >= deadline:
                raise OwnerLives(
                    f"a worker named {self._owner} is at work on {self._root} already; "
                    "give this one another name (celery -n NAME@%h)"
                )
            if self._held is None:
                time.sleep(POLL_S)

    def sweep(self, *, grace_s: float) -> int:
        """End what dead owners on this machine left, and an earlier process of ours; returns how many."""
        assert self._held is not None, "claim first"
        ended = self.records.sweep(grace_s=grace_s)
        host = self._owner.rpartition("@")[2]
        for folder in sorted(self._root.glob(f"*@{host}")):
            if folder.name != self._owner:
                with _dead_owner(folder) as is_dead:
                    ended += PidRecords(folder).sweep(grace_s=grace_s) if is_dead else 0
        return ended


@contextmanager
def _dead_owner(folder: Path) -> Iterator[bool]:
    """Whether its owner is dead; it cannot come back while this is held."""
    lock = _lock(folder)
    try:
        yield lock is not None
    finally:
        if lock is not None:
            os.close(lock)


def _lock(folder: Path) -> int | None:
    """The open lock file; None while another process holds it."""
    number = os.open(folder / "owner.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(number)
        return None
    return number
