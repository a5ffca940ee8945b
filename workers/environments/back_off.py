"""Pauses after failures of a place outside, shared by all env workers through Redis.

A server that refuses everybody fails each trajectory at once: without pauses hundreds are spent in a minute,
and the server is hammered. While a pause lasts trajectories are parked; the first one after it tries again.
"""

import hashlib

import redis

from workers.environments.contract import AtCapacity

FIRST_PAUSE_S, LONGEST_PAUSE_S = 2.0, 60.0
NUM_FREE = 2
"""Failures in a row that may be chance."""
FORGET_AFTER_S = 600
"""Without a failure for this long the pauses start small again."""
MAX_REASON = 300


class BackOff:
    """The pauses of one place as one config asks for it: another token or image may work there."""

    def __init__(self, client: redis.Redis, place: str) -> None:
        self._client = client
        digest = hashlib.sha256(place.encode()).hexdigest()[:16]
        self._pause, self._failures = f"deskhand:pause:{digest}", f"deskhand:failures:{digest}"

    def remaining(self) -> tuple[float, str]:
        """(seconds that the pause still lasts, why it was made); (0, "") without one."""
        reason = self._client.get(self._pause)
        left_ms = self._client.pttl(self._pause)
        if not isinstance(reason, bytes) or not isinstance(left_ms, int) or left_ms <= 0:
            return 0.0, ""
        return left_ms / 1000, reason.decode(errors="replace")

    def require_no_pause(self) -> None:
        """Raise AtCapacity, with the reason, while a pause lasts."""
        left_s, reason = self.remaining()
        if left_s:
            raise AtCapacity(f"tried again in {left_s:.0f} s after: {reason}", retry_after_s=left_s)

    def failed(self, reason: str) -> None:
        """Pause after a few in a row, each time twice as long."""
        number = int(self._client.incr(self._failures))  # type: ignore[arg-type]  # redis-py's stubs allow awaitables
        self._client.expire(self._failures, FORGET_AFTER_S)
        if number <= NUM_FREE:
            return
        pause_s = min(FIRST_PAUSE_S * 2 ** min(number - NUM_FREE - 1, 10), LONGEST_PAUSE_S)
        self._client.set(self._pause, reason[:MAX_REASON], px=int(pause_s * 1000))

    def worked(self) -> None:
        """It answers: no pause any more."""
        self._client.delete(self._pause, self._failures)
