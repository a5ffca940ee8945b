"""What a thread tells or asks the server again and again, beside what its process is for."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from typing import Self

from django.db import DatabaseError

from webapp.lib.database_pool import lent_connection
from workers.door.https_door import DoorRefused

log = logging.getLogger(__name__)
JOIN_S = 10.0


class RepeatedStep:
    """Calls `step` every `every_s` seconds until `stopping`, or until the end of the `with` block.

    An error ends one step, never the thread: nothing would show that it is gone. `expected` are errors that
    need one line only, as those of the server do. `at_once`: the first step does not wait.

    `is_needed`: any other error ends the process, and its supervisor starts it anew. A worker without its
    heartbeat looks ready, is lost to the server, and does work that counts for nothing.
    """

    def __init__(
        self,
        name: str,
        step: Callable[[], object],
        *,
        every_s: float,
        stopping: threading.Event | None = None,
        expected: tuple[type[Exception], ...] = (),
        is_needed: bool = False,
        at_once: bool = False,
    ) -> None:
        self.name = name
        self.stopping = stopping or threading.Event()
        self._step = step
        self._every_s = every_s
        self._expected: tuple[type[Exception], ...] = (DatabaseError, DoorRefused, *expected)
        self._is_needed = is_needed
        self._first_wait_s = 0.0 if at_once else every_s
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
        wait_s = self._first_wait_s
        while not self.stopping.wait(wait_s):
            wait_s = self._every_s
            try:
                with lent_connection():
                    self._step()
            except self._expected as error:
                log.warning("%s: trying again in %.0f s: %s", self.name, self._every_s, error)
            except Exception:  # the edge of a thread
                if self._is_needed:
                    log.critical("this process ends, since its thread %s did", self.name, exc_info=True)
                    os._exit(1)
                log.exception("%s: trying again in %.0f s", self.name, self._every_s)
