"""Long work of other applications, in child processes of the dispatcher: a tick must not wait for it.

Each kind has at most one process at a time: `manage.py COMMAND ID`, at low priority. What it does it claims
in the database, so nothing is lost with it or with the dispatcher.
"""

from __future__ import annotations

import logging
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

from django.conf import settings

log = logging.getLogger(__name__)
GRACE_S = 5.0
RETRY_S = 10.0
"""After a process that failed."""
POLITELY = ("nice", "-n", "10")


@dataclass(frozen=True)
class ChildWork:
    """A kind of work."""

    command: str
    """Of manage.py; it takes an id."""
    next_waiting: Callable[[], int | None]


_kinds: list[ChildWork] = []


def register(kind: ChildWork) -> None:
    """Further applications have theirs done, too."""
    _kinds.append(kind)


class Children:
    """The processes that run now."""

    def __init__(self) -> None:
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._not_before: dict[str, float] = {}

    def go_on(self) -> None:
        """Start what waits, where nothing of its kind runs."""
        for kind in _kinds:
            if self._is_busy(kind.command) or time.monotonic() < self._not_before.get(kind.command, 0.0):
                continue
            if (pk := kind.next_waiting()) is not None:
                self._running[kind.command] = _start(kind.command, pk)

    def _is_busy(self, command: str) -> bool:
        child = self._running.get(command)
        if child is None:
            return False
        code = child.poll()
        if code is None:
            return True
        del self._running[command]
        if code:
            log.warning("%s ended with code %d", command, code)
            self._not_before[command] = time.monotonic() + RETRY_S
        return False

    def stop(self) -> None:
        """End them; their work goes on after the next start."""
        for child in self._running.values():
            child.terminate()
        for command, child in self._running.items():
            try:
                child.wait(GRACE_S)
            except subprocess.TimeoutExpired:
                log.warning("%s did not stop and is killed", command)
                child.kill()
                child.wait()
        self._running.clear()


def _start(command: str, pk: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*POLITELY, sys.executable, str(settings.BASE_DIR / "manage.py"), command, str(pk)],
        cwd=settings.BASE_DIR,
        stdin=subprocess.DEVNULL,
    )
