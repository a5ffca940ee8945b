"""The line of clients that wait for a desktop, and how long it will take. The owner's lock guards it."""

import time
from collections import deque
from statistics import fmean

NUM_REMEMBERED = 20


class WaitingLine:
    """Tickets by request key, first come first served; a ticket that is not asked about is dropped."""

    RETRY_AFTER_S = 2.0
    """Cheap to answer, and a free desktop stands idle for as long on average."""
    TICKET_S = 10.0
    """A client that has not asked for this long is gone, or comes back to the end of the line."""

    def __init__(self) -> None:
        self._tickets: dict[str, float] = {}
        """Key -> when it was last asked about, oldest ticket first."""
        self._durations: deque[float] = deque(maxlen=NUM_REMEMBERED)

    def __len__(self) -> int:
        self._forget_absent()
        return len(self._tickets)

    def ask(self, key: str) -> int:
        """Place of the key, 1 = next; a new key stands at the end."""
        self._forget_absent()
        self._tickets[key] = time.monotonic()  # keeps its place when it is known
        return list(self._tickets).index(key) + 1

    def ahead_of(self, key: str) -> int:
        """How many would have to be served before the key."""
        self._forget_absent()
        keys = list(self._tickets)
        return keys.index(key) if key in self._tickets else len(keys)

    def leave(self, key: str) -> None:
        self._tickets.pop(key, None)

    def clear(self) -> None:
        self._tickets.clear()

    def ended(self, duration_s: float) -> None:
        """Note an episode's duration: the base of the estimate."""
        self._durations.append(duration_s)

    def expected_wait_s(self, position: int, num_desktops: int) -> float | None:
        """Seconds until the place is served; None before the first episode has ended."""
        if not self._durations:
            return None
        return round(fmean(self._durations) * position / num_desktops, 1)

    def _forget_absent(self) -> None:
        limit = time.monotonic() - self.TICKET_S
        for key in [key for key, asked_at in self._tickets.items() if asked_at < limit]:
            del self._tickets[key]
