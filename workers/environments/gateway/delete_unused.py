"""While an env worker runs, it deletes rented sandboxes that serve no trajectory (any more)."""

from __future__ import annotations

import logging
import threading

from django.db import DatabaseError, close_old_connections

from workers.env import reporting
from workers.environments.gateway.reaper import REAP_EVERY_S, reap_all

log = logging.getLogger(__name__)


def start(stopping: threading.Event) -> None:
    """Look after them until `stopping`."""
    threading.Thread(target=_run, args=(stopping,), name="gateway-upkeep", daemon=True).start()


def _run(stopping: threading.Event) -> None:
    while not stopping.wait(REAP_EVERY_S):
        try:
            close_old_connections()
            look_after()
        except DatabaseError as error:
            log.warning("rented sandboxes not looked after: %s", error)


def look_after() -> int:
    """One round; how many were deleted."""
    return reap_all(reporting.gateways_in_use(), reporting.trajectory_keys)
