"""Beats for the experiment that this worker holds, whatever its main thread is at.

Making a model, loading weights or a busy machine may keep the main thread for longer than the dispatcher's
patience; only a process that is gone or stands still shall be taken for lost.
"""

from __future__ import annotations

import logging
import threading

from django.db import DatabaseError

from workers.door.https_door import DoorRefused
from workers.gpu.webapp_imports import HeldAttempt, beat_attempt, lent_connection

log = logging.getLogger(__name__)
EVERY_S = 2.0


class Heartbeat:
    """A thread that beats until the end of the `with` block, or until the attempt was taken away."""

    def __init__(self, attempt: HeldAttempt) -> None:
        self._attempt = attempt
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._forever, name="experiment-heartbeat", daemon=True)

    def __enter__(self) -> Heartbeat:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join(timeout=10)

    def _forever(self) -> None:
        while not self._stopping.wait(EVERY_S):
            try:
                with lent_connection():
                    if not beat_attempt(self._attempt.pk).is_current:
                        break
            except (DatabaseError, DoorRefused) as error:
                log.warning("heartbeat not recorded, trying again in %.0f s: %s", EVERY_S, error)
