"""Limits for calls that cannot be given one: a thread cuts those that take too long.

One thread for all calls of the process: a `threading.Timer` for each would start a thread for each, which
costs more than the call.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

LOOK_S = 0.2
"""Calls are cut up to this much after their limit."""


class CallLimits:
    def __init__(self) -> None:
        self._calls: dict[object, tuple[float, Callable[[], None]]] = {}
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()

    @contextmanager
    def cut_after(self, limit_s: float, cut: Callable[[], None]) -> Iterator[None]:
        """Inside the block, `cut` is called on another thread once `limit_s` is over, perhaps repeatedly."""
        self._watch()
        call = object()
        self._calls[call] = (time.monotonic() + limit_s, cut)
        try:
            yield
        finally:
            del self._calls[call]

    def _watch(self) -> None:
        """There is a thread that looks; after a fork the child has none."""
        if self._thread is not None and self._thread.is_alive():
            return
        with self._starting:
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._look, name="call limits", daemon=True)
                self._thread.start()

    def _look(self) -> None:
        while True:
            time.sleep(LOOK_S)
            now = time.monotonic()
            for deadline, cut in list(self._calls.values()):
                if now > deadline:
                    cut()


CALLS = CallLimits()
