"""Whether this worker is asked to stop while a job runs: by Celery, or on a joined host by a signal."""

from __future__ import annotations

import threading

from celery.worker import state

asked = threading.Event()
"""Set by a process that is no worker of Celery."""


def is_wanted() -> bool:
    return asked.is_set() or state.should_stop is not None
