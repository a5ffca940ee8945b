"""Threads that a process cannot work without."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable

log = logging.getLogger(__name__)


def start_needed(name: str, body: Callable[[], None]) -> threading.Thread:
    """Run `body` in a thread; an error in it ends the process, which its supervisor starts anew.

    A worker without its heartbeat looks ready, is lost to the server, and does work that counts for nothing.
    """

    def run() -> None:
        try:
            body()
        except Exception:  # the edge of a thread
            log.critical("this process ends, since its thread %s did", name, exc_info=True)
            os._exit(1)

    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    return thread
