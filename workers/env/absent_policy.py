"""Waits for a policy server that no connection reaches: the link to it may come back, or it is gone for good.

When its gpu worker died, that is noticed after seconds, and the attempt's groups are called off. Until then
each failed try would use up one of a place's few retries, and hundreds of tries take no time.
"""

import logging
import time
from collections.abc import Callable
from typing import TypeVar

import httpx

log = logging.getLogger(__name__)
T = TypeVar("T")

LIMIT_S = 60.0
"""Well beyond what the dispatcher needs to miss a gpu worker (15 s) on a busy machine."""
LOOK_S = 1.0


def ask_patiently(ask: Callable[[], T], is_over: Callable[[], bool]) -> tuple[T, float]:
    """Its answer, and the seconds in which there was no one to ask.

    Raises httpx.ConnectError or ConnectTimeout when the trajectory `is_over`, or after `LIMIT_S`.
    """
    missed_at: float | None = None
    while True:
        try:
            answer = ask()
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            now = time.monotonic()
            if missed_at is None:
                missed_at = now
                log.warning("the policy server is out of reach, asking on for %.0f s: %s", LIMIT_S, error)
            if is_over() or now - missed_at > LIMIT_S:
                raise
            time.sleep(LOOK_S)
        else:
            return answer, 0.0 if missed_at is None else time.monotonic() - missed_at
