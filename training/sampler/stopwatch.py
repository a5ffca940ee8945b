"""Adds up the seconds in which something went on: work at the engine, or waiting for it."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Stopwatch:
    """Counts a second once, however many overlapping pieces run in it. For any number of threads."""

    def __init__(self) -> None:
        self._made_at = time.monotonic()
        self._num_running = 0
        self._running_since = 0.0
        self._stopped_s = 0.0
        self._lock = threading.Lock()

    @contextmanager
    def running(self) -> Iterator[None]:
        self.start()
        try:
            yield
        finally:
            self.stop()

    def start(self) -> None:
        """A piece begins; `stop` has to follow."""
        with self._lock:
            if self._num_running == 0:
                self._running_since = time.monotonic()
            self._num_running += 1

    def stop(self) -> None:
        """A piece ends."""
        with self._lock:
            self._num_running -= 1
            if self._num_running == 0:
                self._stopped_s += time.monotonic() - self._running_since

    def count_all(self) -> None:
        """Count every second since it was made: what was done in the others is lost. Not while running."""
        with self._lock:
            self._stopped_s = time.monotonic() - self._made_at

    @property
    def seconds(self) -> float:
        """So far, what runs now included."""
        with self._lock:
            running = time.monotonic() - self._running_since if self._num_running else 0.0
            return self._stopped_s + running

    @property
    def idle_s(self) -> float:
        """Seconds since it was made in which nothing ran."""
        return time.monotonic() - self._made_at - self.seconds

    def lap(self) -> Callable[[], float]:
        """A function that tells the seconds from now on."""
        before = self.seconds
        return lambda: self.seconds - before
