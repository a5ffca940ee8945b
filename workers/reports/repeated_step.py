"""What a thread reports or requests again and again, beside what its process is for."""

import logging
import threading
from collections.abc import Callable
from typing import Self

from django.db import DatabaseError

from webapp.lib.database_pool import lent_connection
from workers.reports.contract import CallRefused

log = logging.getLogger(__name__)
JOIN_S = 10.0
PASSING = (DatabaseError, CallRefused, OSError)
"""A server that is away, a full disk: one line says so."""


class RepeatedStep:
    """Calls `step` every `every_s` seconds until `stopping`, or until the end of the `with` block.

    An error ends one step, never the thread: nothing would show that it is gone. `at_fault` is called after
    an error that does not pass; it may end a process that is of no use without the step.
    """

    def __init__(
        self,
        name: str,
        step: Callable[[], object],
        every_s: float,
        *,
        stopping: threading.Event | None = None,
        at_fault: Callable[[], object] = lambda: None,
    ) -> None:
        self.stopping = stopping or threading.Event()
        self._step, self._every_s, self._at_fault = step, every_s, at_fault
        self._thread = threading.Thread(target=self._forever, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def is_running(self) -> bool:
        return self._thread.is_alive()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopping.set()
        if self.is_running():
            self._thread.join(timeout=JOIN_S)

    def _forever(self) -> None:
        while not self.stopping.is_set():
            try:
                with lent_connection():
                    self._step()
            except PASSING as error:
                log.warning("%s: trying again in %.0f s: %s", self._thread.name, self._every_s, error)
            except Exception:  # the edge of a thread
                log.exception("%s: trying again in %.0f s", self._thread.name, self._every_s)
                self._at_fault()
            self.stopping.wait(self._every_s)
