"""Long work of other applications, in child processes of the dispatcher: a tick must not wait for it.

Each kind has at most one process at a time: `manage.py run_work KIND ID`, at low priority. It takes its row
in the database, so nothing is lost with it or with the dispatcher. How a process ended badly goes to that
row, and so to its page.
"""

import logging
import subprocess
import sys
import time
from collections import deque
from signal import Signals
from threading import Thread

from django.conf import settings

from webapp.dispatcher.work_kinds import WorkKind, kinds
from webapp.lib.long_work import BadEnd

log = logging.getLogger(__name__)
GRACE_S = 5.0
RETRY_S = 10.0
"""After a process that failed."""
POLITELY = ("nice", "-n", "10")
KEPT_LINES = 200
"""The last ones of what a process wrote to stderr."""
REASON_LINES = 4
TRACEBACK = "Traceback (most recent call last):"
TRY_AGAIN = 75
"""Exit code of one that found the database away or locked (EX_TEMPFAIL of sysexits.h)."""


class Child:
    """A process that runs, and the end of what it says."""

    def __init__(self, kind: str, pk: int) -> None:
        self.pk = pk
        self.process = subprocess.Popen(
            [*POLITELY, sys.executable, str(settings.BASE_DIR / "manage.py"), "run_work", kind, str(pk)],
            cwd=settings.BASE_DIR,
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        )
        self._said: deque[str] = deque(maxlen=KEPT_LINES)
        self._reader = Thread(target=self._pass_on, daemon=True)
        self._reader.start()

    def _pass_on(self) -> None:
        """What it says goes to the dispatcher's own stderr, line by line."""
        assert self.process.stderr is not None
        with self.process.stderr as lines:
            for line in lines:
                sys.stderr.write(line)
                self._said.append(line)

    def bad_end(self, code: int) -> BadEnd:
        """Of one that ended with `code`, which is not 0."""
        self._reader.join(GRACE_S)
        if code < 0:
            return BadEnd(f"The process was killed by {Signals(-code).name}.", may_pass=True)
        why = reason_in(list(self._said)) or "it said nothing"
        return BadEnd(f"The process ended with code {code}: {why}", may_pass=code == TRY_AGAIN)


def reason_in(said: list[str]) -> str:
    """The exception of the last traceback, up to `REASON_LINES` of its message; else the last line."""
    lines = [line.rstrip() for line in said if line.strip()]
    begins = max((number for number, line in enumerate(lines) if line.startswith(TRACEBACK)), default=None)
    if begins is not None:
        behind = (number for number in range(begins + 1, len(lines)) if not lines[number][0].isspace())
        if (first := next(behind, None)) is not None:
            return " ".join(line.strip() for line in lines[first : first + REASON_LINES])
    return lines[-1].strip() if lines else ""


class Children:
    """The processes that run now."""

    def __init__(self) -> None:
        self._running: dict[str, Child] = {}
        self._not_before: dict[str, float] = {}

    def go_on(self) -> None:
        """Start what waits, where nothing of its kind runs."""
        for kind in kinds.values():
            if self._is_busy(kind) or time.monotonic() < self._not_before.get(kind.name, 0.0):
                continue
            if (pk := kind.next_waiting()) is not None:
                self._running[kind.name] = Child(kind.name, pk)

    def _is_busy(self, kind: WorkKind) -> bool:
        child = self._running.get(kind.name)
        if child is None:
            return False
        code = child.process.poll()
        if code is None:
            return True
        if code:
            end = child.bad_end(code)
            log.warning("%s %d: %s", kind.name, child.pk, end.why)
            kind.ended_badly(child.pk, end)
            self._not_before[kind.name] = time.monotonic() + (RETRY_S if end.may_pass else 0.0)
        del self._running[kind.name]
        return False

    def stop(self) -> None:
        """End them; their work goes on after the next start."""
        for child in self._running.values():
            child.process.terminate()
        for name, child in self._running.items():
            try:
                child.process.wait(GRACE_S)
            except subprocess.TimeoutExpired:
                log.warning("%s did not stop and is killed", name)
                child.process.kill()
                child.process.wait()
        self._running.clear()
