"""Seconds without a request: the engine's share of waiting in an asynchronous run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class IdleClock:
    """Counts the seconds in which no piece of work was going on. For one thread (an event loop)."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._at_work = 0
        self._idle_since = now()
        self._idle_s = 0.0

    @contextmanager
    def work(self) -> Iterator[None]:
        """A piece of work; several may overlap."""
        if self._at_work == 0:
            self._idle_s += self._now() - self._idle_since
        self._at_work += 1
        try:
            yield
        finally:
            self._at_work -= 1
            self._idle_since = self._now()

    @property
    def idle_s(self) -> float:
        """Seconds so far, the current pause included."""
        running = 0.0 if self._at_work else self._now() - self._idle_since
        return self._idle_s + running
