"""Keeps clean desktops ready, so that a lease does not wait for a boot while the host has room.

How many are wanted of one kind (provider and spec) follows demand: the most leases at once in the last
minute, the requests that wait, the trajectories that the database says are queued. Where a reset is slow,
some spares come on top: a lease is then moved to a clean desktop and the dirty one is cleaned behind it.
Bounded by the host's capacity and by `limit`; what was not leased for `idle_s` is given up.
"""

import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from workers.desktops.host.desktop_record import DesktopRecord, Kind
from workers.desktops.host.messages import Phase, PoolKind

WARM_LIMIT = 8
IDLE_S = 120.0
PEAK_WINDOW_S = 60.0
EXPECT_S = 10.0
"""An announced number of queued trajectories counts this long; the mirror repeats it every few seconds."""
SLOW_RESET_S = 0.25
"""Above it, a lease is moved to a clean desktop instead of waiting for its own to be cleaned."""
SPARE_SHARE = 0.25
"""Spares per leased desktop of a kind with slow resets: a reset takes a fraction of a trajectory."""
FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 60.0
FORGET_S = 600.0
MAX_RESETS = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class KindState:
    """Demand and supply of one kind."""

    leased: int
    waiting: int = 0
    """Requests that wait for a desktop."""
    peak: int = 0
    """Most leases at once in the last minute."""
    expected: int = 0
    """More leases that will be asked for soon."""
    reset_s: float = 0.0
    """Typical duration of a reset."""
    slow_reset_s: float = SLOW_RESET_S
    """Above it, leases are moved instead."""


def wanted_free(state: KindState) -> int:
    """How many desktops without a lease the kind should have, before limits."""
    demand = max(state.peak, state.leased + max(state.waiting, state.expected))
    in_use = max(state.leased, state.peak)
    spares = math.ceil(in_use * SPARE_SHARE) if state.reset_s > state.slow_reset_s else 0
    return demand - state.leased + spares


@dataclass(slots=True)
class KindHistory:
    leases: deque[tuple[float, int]] = field(default_factory=deque)
    """(time, leased at once) of the last minute."""
    resets: deque[float] = field(default_factory=lambda: deque(maxlen=MAX_RESETS))
    waiters: list[object] = field(default_factory=list)
    """Requests that wait, the earliest first."""
    expected: int = 0
    expected_at: float = -math.inf
    used_at: float = 0.0
    pause_s: float = 0.0
    """Grows with each failed build."""
    next_build_at: float = 0.0
    problem: str = ""
    prepared_at: float = -math.inf
    """When one of them was last made for a task."""


class WarmPool:
    """Decides; the host builds and destroys."""

    def __init__(
        self,
        *,
        limit: int = WARM_LIMIT,
        idle_s: float = IDLE_S,
        slow_reset_s: float = SLOW_RESET_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.limit = limit
        self.idle_s = idle_s
        self.slow_reset_s = slow_reset_s
        self._clock = clock
        self._histories: dict[Kind, KindHistory] = {}

    def history(self, kind: Kind) -> KindHistory:
        return self._histories.setdefault(kind, KindHistory(used_at=self._clock()))

    # -- what happens -----------------------------------------------------------------------

    @contextmanager
    def waiting(self, kind: Kind) -> Iterator[Callable[[], int]]:
        """Inside the block a request waits; gives a function: how many requests wait before it."""
        history = self.history(kind)
        history.used_at = self._clock()
        ticket = object()
        history.waiters.append(ticket)
        try:
            yield lambda: history.waiters.index(ticket)
        finally:
            history.waiters.remove(ticket)

    def note_leases(self, kind: Kind, leased: int) -> None:
        """How many are leased now, after one more or one less."""
        history, now = self.history(kind), self._clock()
        history.used_at = now
        history.leases.append((now, leased))

    def note_reset(self, kind: Kind, wall_s: float) -> None:
        self.history(kind).resets.append(wall_s)

    def note_prepared(self, kind: Kind) -> None:
        """One was made for a task: to such holders a clean spare is of no use."""
        self.history(kind).prepared_at = self._clock()

    def expect(self, provider: str, size: tuple[int, int], count: int) -> None:
        """`count` more leases of this kind will be asked for; counts for kinds that were used before."""
        for (name, spec), history in self._histories.items():
            if (name, (spec.width, spec.height)) == (provider, size):
                history.expected, history.expected_at = count, self._clock()

    def note_build(self, kind: Kind, problem: str) -> None:
        """A build of the pool's own ended, with a problem or with ""."""
        history = self.history(kind)
        history.problem = problem
        history.pause_s = min(max(history.pause_s * 2, FIRST_PAUSE_S), LONGEST_PAUSE_S) if problem else 0.0
        history.next_build_at = self._clock() + history.pause_s

    # -- what follows -----------------------------------------------------------------------

    def is_slow(self, kind: Kind) -> bool:
        """True when cleaning one in place takes longer than taking a clean one."""
        return self._reset_s(self.history(kind)) > self.slow_reset_s

    def wanted(self, kind: Kind, leased: int) -> int:
        """How many free ones are wanted of this kind, before the host's capacity."""
        history, now = self.history(kind), self._clock()
        # The newest entry older than the window still held when the window began.
        while len(history.leases) > 1 and history.leases[1][0] < now - PEAK_WINDOW_S:
            history.leases.popleft()
        if history.leases and history.leases[0][0] < now - PEAK_WINDOW_S and len(history.leases) == 1:
            history.leases[0] = (now - PEAK_WINDOW_S, leased)
        state = KindState(
            leased=leased,
            waiting=len(history.waiters),
            peak=max((count for _, count in history.leases), default=0),
            expected=history.expected if now - history.expected_at < EXPECT_S else 0,
            reset_s=self._reset_s(history) if now - history.prepared_at > PEAK_WINDOW_S else 0.0,
            slow_reset_s=self.slow_reset_s,
        )
        return min(self.limit, wanted_free(state))

    @staticmethod
    def _reset_s(history: KindHistory) -> float:
        return sorted(history.resets)[len(history.resets) // 2] if history.resets else 0.0

    def to_build(self, desktops: Iterable[DesktopRecord], room: int) -> list[Kind]:
        """Kinds to build one of now, at most `room`; a kind may be there more than once."""
        everything, found = list(desktops), []
        now = self._clock()
        for kind, history in self._histories.items():
            if history.next_build_at > now:
                continue
            mine = [record for record in everything if record.kind == kind]
            free = sum(record.is_free or record.is_coming for record in mine)
            leased = sum(record.lease is not None for record in mine)
            found += [kind] * max(0, self.wanted(kind, leased) - free)
        return found[: max(0, room)]

    def to_give_up(self, desktops: Iterable[DesktopRecord]) -> list[DesktopRecord]:
        """Free desktops above what is wanted that were not leased for a while."""
        everything, now = list(desktops), self._clock()
        found: list[DesktopRecord] = []
        for kind in {record.kind for record in everything}:
            mine = [record for record in everything if record.kind == kind]
            leased = sum(record.lease is not None for record in mine)
            free = sorted((m for m in mine if m.is_free), key=lambda record: record.ready_since)
            surplus = max(0, len(free) - self.wanted(kind, leased))
            found += [m for m in free[:surplus] if now - m.ready_since > self.idle_s]
        self._forget_old(everything)
        return found

    def _forget_old(self, desktops: list[DesktopRecord]) -> None:
        alive = {record.kind for record in desktops}
        for kind, history in list(self._histories.items()):
            if kind not in alive and not history.waiters and self._clock() - history.used_at > FORGET_S:
                del self._histories[kind]

    def report(self, desktops: Iterable[DesktopRecord]) -> list[PoolKind]:
        """The state of every kind, for people."""
        everything = list(desktops)
        rows = []
        for kind, history in self._histories.items():
            mine = [record for record in everything if record.kind == kind]
            leased = sum(record.lease is not None for record in mine)
            rows.append(
                PoolKind(
                    provider=kind[0],
                    width=kind[1].width,
                    height=kind[1].height,
                    leased=leased,
                    ready=sum(record.phase is Phase.READY for record in mine),
                    coming=sum(record.is_coming for record in mine),
                    wanted=self.wanted(kind, leased),
                    problem=history.problem,
                )
            )
        return rows
