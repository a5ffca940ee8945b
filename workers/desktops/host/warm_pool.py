"""Keeps clean desktops ready, so that a lease does not wait for a boot while the host has room.

How many are wanted of one kind (provider and spec) follows demand: the most leases at once in the last
minute, the requests that wait, the trajectories that the database says are queued. Where a reset is slow,
some spares come on top: a lease is then moved to a clean desktop and the dirty one is cleaned behind it.
Bounded by the host's capacity and by `limit`; what nobody wanted for `idle_s` is given up.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from workers.desktops.host.desktop_record import Kind, Managed
from workers.desktops.host.messages import Phase, PoolKind

WARM_LIMIT = 8
IDLE_S = 120.0
PEAK_WINDOW_S = 60.0
EXPECT_S = 10.0
"""What was said to be queued counts for so long: its teller repeats it every few seconds."""
SLOW_RESET_S = 0.25
"""Above it, a lease is moved to a clean desktop instead of waiting for its own to be cleaned."""
SPARE_SHARE = 0.25
"""Spares per leased desktop of a kind with slow resets: a reset takes a fraction of a trajectory."""
FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 60.0
FORGET_S = 600.0
MAX_RESETS = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Stock:
    """How things stand with one kind."""

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


def wanted_free(stock: Stock) -> int:
    """How many desktops without a lease the kind should have, before limits."""
    demand = max(stock.peak, stock.leased + max(stock.waiting, stock.expected))
    in_use = max(stock.leased, stock.peak)
    spares = math.ceil(in_use * SPARE_SHARE) if stock.reset_s > stock.slow_reset_s else 0
    return demand - stock.leased + spares


@dataclass(slots=True)
class KindBook:
    """What the pool remembers of one kind."""

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


class Pool:
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
        self._books: dict[Kind, KindBook] = {}

    def book(self, kind: Kind) -> KindBook:
        return self._books.setdefault(kind, KindBook(used_at=self._clock()))

    # -- what happens -----------------------------------------------------------------------

    @contextmanager
    def waiting(self, kind: Kind) -> Iterator[Callable[[], int]]:
        """While a request waits; gives what tells how many requests stand before it now."""
        book = self.book(kind)
        book.used_at = self._clock()
        ticket = object()
        book.waiters.append(ticket)
        try:
            yield lambda: book.waiters.index(ticket)
        finally:
            book.waiters.remove(ticket)

    def note_leases(self, kind: Kind, leased: int) -> None:
        """How many are leased now, after one more or one less."""
        book, now = self.book(kind), self._clock()
        book.used_at = now
        book.leases.append((now, leased))

    def note_reset(self, kind: Kind, wall_s: float) -> None:
        self.book(kind).resets.append(wall_s)

    def note_prepared(self, kind: Kind) -> None:
        """One was made for a task: to such holders a clean spare is of no use."""
        self.book(kind).prepared_at = self._clock()

    def expect(self, provider: str, size: tuple[int, int], count: int) -> None:
        """So many more leases of this kind will be asked for; counts for kinds that were used before."""
        for (name, spec), book in self._books.items():
            if (name, (spec.width, spec.height)) == (provider, size):
                book.expected, book.expected_at = count, self._clock()

    def note_build(self, kind: Kind, problem: str) -> None:
        """A build of the pool's own ended, with a problem or with ""."""
        book = self.book(kind)
        book.problem = problem
        book.pause_s = min(max(book.pause_s * 2, FIRST_PAUSE_S), LONGEST_PAUSE_S) if problem else 0.0
        book.next_build_at = self._clock() + book.pause_s

    # -- what follows -----------------------------------------------------------------------

    def is_slow(self, kind: Kind) -> bool:
        """True when cleaning one in place takes longer than taking a clean one."""
        return self._reset_s(self.book(kind)) > self.slow_reset_s

    def wanted(self, kind: Kind, leased: int) -> int:
        """How many free ones are wanted of this kind, before the host's capacity."""
        book, now = self.book(kind), self._clock()
        # The newest entry older than the window still held when the window began.
        while len(book.leases) > 1 and book.leases[1][0] < now - PEAK_WINDOW_S:
            book.leases.popleft()
        if book.leases and book.leases[0][0] < now - PEAK_WINDOW_S and len(book.leases) == 1:
            book.leases[0] = (now - PEAK_WINDOW_S, leased)
        stock = Stock(
            leased=leased,
            waiting=len(book.waiters),
            peak=max((count for _, count in book.leases), default=0),
            expected=book.expected if now - book.expected_at < EXPECT_S else 0,
            reset_s=self._reset_s(book) if now - book.prepared_at > PEAK_WINDOW_S else 0.0,
            slow_reset_s=self.slow_reset_s,
        )
        return min(self.limit, wanted_free(stock))

    @staticmethod
    def _reset_s(book: KindBook) -> float:
        return sorted(book.resets)[len(book.resets) // 2] if book.resets else 0.0

    def to_build(self, desktops: Iterable[Managed], room: int) -> list[Kind]:
        """Kinds to build one of now, at most `room`; a kind may be there more than once."""
        everything, found = list(desktops), []
        now = self._clock()
        for kind, book in self._books.items():
            if book.next_build_at > now:
                continue
            mine = [managed for managed in everything if managed.kind == kind]
            free = sum(managed.is_free or managed.is_coming for managed in mine)
            leased = sum(managed.lease is not None for managed in mine)
            found += [kind] * max(0, self.wanted(kind, leased) - free)
        return found[: max(0, room)]

    def to_give_up(self, desktops: Iterable[Managed]) -> list[Managed]:
        """Free desktops above what is wanted that nobody took for a while."""
        everything, now = list(desktops), self._clock()
        found: list[Managed] = []
        for kind in {managed.kind for managed in everything}:
            mine = [managed for managed in everything if managed.kind == kind]
            leased = sum(managed.lease is not None for managed in mine)
            free = sorted((m for m in mine if m.is_free), key=lambda managed: managed.ready_since)
            surplus = max(0, len(free) - self.wanted(kind, leased))
            found += [m for m in free[:surplus] if now - m.ready_since > self.idle_s]
        self._forget_old(everything)
        return found

    def _forget_old(self, desktops: list[Managed]) -> None:
        alive = {managed.kind for managed in desktops}
        for kind, book in list(self._books.items()):
            if kind not in alive and not book.waiters and self._clock() - book.used_at > FORGET_S:
                del self._books[kind]

    def report(self, desktops: Iterable[Managed]) -> list[PoolKind]:
        """The pool's book for people."""
        everything = list(desktops)
        rows = []
        for kind, book in self._books.items():
            mine = [managed for managed in everything if managed.kind == kind]
            leased = sum(managed.lease is not None for managed in mine)
            rows.append(
                PoolKind(
                    provider=kind[0],
                    width=kind[1].width,
                    height=kind[1].height,
                    leased=leased,
                    ready=sum(managed.phase is Phase.READY for managed in mine),
                    coming=sum(managed.is_coming for managed in mine),
                    wanted=self.wanted(kind, leased),
                    problem=book.problem,
                )
            )
        return rows
