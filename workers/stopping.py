"""How a worker ends: asked by Celery, on a joined host by a signal, or by itself when it is of no use."""

import logging
import os
import threading

from celery.worker import state

log = logging.getLogger(__name__)
asked = threading.Event()
"""Set by a process that is no worker of Celery."""


def is_wanted() -> bool:
    return asked.is_set() or state.should_stop is not None


def end_process() -> None:
    """At once, so that its supervisor starts it anew: a worker without its heartbeat looks ready, is lost to
    the server, and does work that counts for nothing."""
    log.critical("this process ends: what it cannot do without has failed")
    os._exit(1)
