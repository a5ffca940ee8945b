"""Whether silence of workers means anything: only while heartbeats can be written.

After a locked or absent database, a busy machine or a step of the clock, every heartbeat looks old until its
worker has written the next one. No worker is taken for lost before it had the time to.
"""

import time
from collections.abc import Callable

import httpx
from django.conf import settings
from django.db import connection, transaction

GAP_S = 5.0
"""Between two proofs; a heartbeat every 2 s stays below all limits (10 s and more) through such a gap."""
CLOCK_STEP_S = 2.0
GRACE_S = 15.0
"""The longest of the limits, and far more than a heartbeat's period."""
PORT_ANSWERS_WITHIN_S = 1.0


def hosts_port_answers() -> bool:
    """Whether joined hosts could reach us just now; our own certificate is no matter here."""
    try:
        found = httpx.get(
            f"{settings.HOSTS_URL}/hosts/authority.pem",
            timeout=PORT_ANSWERS_WITHIN_S,
            verify=False,  # nothing is sent, and nothing of the answer is used
            trust_env=False,
        )
    except httpx.HTTPError:
        return False
    return not found.is_server_error


class Liveness:
    """Proves again and again that the database takes writes, and that the clock runs evenly."""

    def __init__(
        self, monotonic: Callable[[], float] = time.monotonic, wall: Callable[[], float] = time.time
    ) -> None:
        self._monotonic, self._wall = monotonic, wall
        self._proved_at = monotonic()
        self._clock = wall() - self._proved_at
        self._judges_from = self._proved_at + GRACE_S  # a new dispatcher does not know what was before it

    def may_judge(self) -> bool:
        """True when workers could write their heartbeats lately. Raises OperationalError when none can."""
        with transaction.atomic(), connection.cursor() as cursor:  # SQLite takes the writers' lock here
            cursor.execute("SELECT 1")
        now = self._monotonic()
        clock = self._wall() - now
        if now - self._proved_at > GAP_S or abs(clock - self._clock) > CLOCK_STEP_S:
            self._judges_from = now + GRACE_S
        self._proved_at, self._clock = now, clock
        return now >= self._judges_from
