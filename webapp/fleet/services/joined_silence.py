"""How long a joined host may be silent: it works on while the server is away, so silence alone proves little.

While the server's port has answered all the time, silence says that the host, or its network, is gone.
"""

import time
from collections.abc import Callable
from datetime import timedelta

from django.conf import settings


class JoinedSilence:
    """Of one process; only the dispatcher looks at the port."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._looked_at = self._answers_since = float("-inf")

    def note_port(self, *, answers: bool) -> None:
        """What the port just did; a pause between two looks proves nothing."""
        now = self._monotonic()
        if not answers or now - self._looked_at > settings.HOST_GONE_S / 3:
            self._answers_since = now
        self._looked_at = now

    def limit(self) -> timedelta:
        """DESKHAND_HOST_GONE_S once the port has answered for that long, else DESKHAND_HOST_AWAY_S."""
        seen_s = self._looked_at - self._answers_since
        is_proved = self._looked_at > float("-inf") and seen_s >= settings.HOST_GONE_S
        is_fresh = self._monotonic() - self._looked_at <= settings.HOST_GONE_S / 3
        return timedelta(seconds=settings.HOST_GONE_S if is_proved and is_fresh else settings.HOST_AWAY_S)


SILENCE = JoinedSilence()
