"""Which waiting experiments start now, where, and why the others wait: a pure function of the pool.

    higher priority -> overdue ones, oldest first -> team that holds fewest places -> place in the queue

Down that order, each experiment gets places of one kind on one worker, where the fewest are left over. One
that does not fit waits, and later ones may take what it could use (backfill). When `MAX_PASSES` of them have,
it is overdue: it goes first, and, one after the other, the places of the worker where most of them are free
are kept for it.

So nothing starves within a priority: what an overdue experiment gathers only grows, and everything that runs
ends. A priority is a person's word: while higher ones take all that a lower one could use, it waits.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum

MAX_PASSES = 8
"""Later experiments that may take what an earlier one could use, before it is overdue."""
CPU = "cpu"
"""Kind of the places of a worker without GPUs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A GPU, or a share of a host without any."""

    key: str
    """The same for every worker that sees it."""
    kind: str = CPU
    memory_bytes: int = 0
    is_foreign: bool = False
    """A program that is not ours uses it now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolWorker:
    """A gpu worker that takes work: it holds one experiment at a time."""

    name: str
    """NAME@HOST"""
    places: tuple[Place, ...] = ()
    is_uncounted: bool = False
    """It has no GPU, and its host's places are not counted: any one experiment that needs no GPU."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """What an experiment asks of one worker."""

    num_places: int = 1
    needs_gpus: bool = False
    kind: str = ""
    """Words that the GPU's name must contain; "" = any."""
    memory_bytes: int = 0
    """Least memory of each GPU."""

    def places_of(self, worker: PoolWorker) -> list[list[Place]]:
        """By kind, which are not mixed, those that suit it where there are enough of them."""
        kinds: dict[str, list[Place]] = {}
        for place in worker.places:
            if not (self.needs_gpus and place.kind == CPU) and place.memory_bytes >= self.memory_bytes:
                kinds.setdefault(place.kind, []).append(place)
        return [found for kind, found in kinds.items() if self.kind.lower() in kind.lower()]

    def fits(self, worker: PoolWorker) -> bool:
        """Whether it could ever run there."""
        if worker.is_uncounted:
            return not self.needs_gpus
        return any(len(places) >= self.num_places for places in self.places_of(worker))


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A queued experiment."""

    pk: int
    team: int = 0
    priority: int = 0
    demand: Demand = Demand()
    num_passed: int = 0
    """Later ones that took what it could use."""
    home: str = ""
    """Host that it ran on last and, where folders are not shared, its checkpoints; "" = it has not run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """What an experiment holds that runs, or was sent a moment ago."""

    pk: int
    team: int
    worker: str
    keys: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """Everything that the decision depends on."""

    workers: Sequence[PoolWorker]
    held: Sequence[Held] = ()
    waiting: Sequence[Waiting] = ()
    """In queue order."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """Start this experiment there, on these places; none on an uncounted worker."""

    pk: int
    worker: str
    keys: tuple[str, ...]


class Why(Enum):
    """Why an experiment does not start now."""

    NO_WORKER = "no worker"
    NEVER_FITS = "never fits"
    TOO_FEW_FREE = "too few free"
    NO_WORKER_FREE = "no worker free"
    KEPT_FOR_OTHER = "kept for other"


@dataclass(frozen=True, slots=True)
class Wait:
    """A reason with its numbers."""

    why: Why
    worker: str = ""
    """Where most of the places that suit it are free (NEVER_FITS: where most of them are)."""
    num_free: int = 0
    num_suitable: int = 0
    """All of that worker's places that suit it."""
    gathers: bool = False
    """It is overdue: what gets free there is kept for it."""
    kept_for: int | None = None


@dataclass(slots=True)
class Decision:
    """What to do now."""

    assignments: list[Assignment] = field(default_factory=list)
    waits: dict[int, Wait] = field(default_factory=dict)
    """In the order in which they come."""
    passed: Counter[int] = field(default_factory=Counter)
    """Waiting experiment -> how many passed it just now."""


def decide(pool: Pool) -> Decision:
    """Which of `pool.waiting` start now, and what the others wait for."""
    this = _Round(pool)
    for one in this.in_order():
        this.settle(one)
    this.count_passes()
    return this.decision


class _Round:
    """One decision while it is being made."""

    def __init__(self, pool: Pool) -> None:
        self.decision = Decision()
        self._pool = pool
        self._taken = {key for held in pool.held for key in held.keys}
        self._taken |= {held.worker for held in pool.held}
        self._kept: dict[str, int] = {}
        """Name of a worker or key of a place -> the overdue experiment that gathers it."""
        self._num_held = Counter[int]()
        for held in pool.held:
            self._num_held[held.team] += max(len(held.keys), 1)
        self._waits: dict[Demand, Wait] = {}
        self._candidates: dict[Demand, list[tuple[PoolWorker, list[list[Place]]]]] = {}

    def in_order(self) -> Iterator[Waiting]:
        """What waits, the next one first; a team's turn depends on what it was given meanwhile."""
        lines: dict[tuple[int, bool, int], list[tuple[int, Waiting]]] = defaultdict(list)
        for place, one in reversed(list(enumerate(self._pool.waiting))):
            is_overdue = one.num_passed >= MAX_PASSES
            lines[-one.priority, not is_overdue, -1 if is_overdue else one.team].append((place, one))
        while lines:
            first = min(lines, key=lambda line: (*line[:2], self._num_held[line[2]], lines[line][-1][0]))
            yield lines[first].pop()[1]
            if not lines[first]:
                del lines[first]

    def settle(self, one: Waiting) -> None:
        """Give it places, or say why not; what did not fit for one fits for none with the same demand."""
        wait = self._waits.get(one.demand)
        if wait is None:
            if (found := self._best_fit(one.demand, one.home)) is not None:
                self._give(one, *found)
                return
            wait = self._waits[one.demand] = self._why(one.demand)
        if one.num_passed >= MAX_PASSES and self._may_gather(one.demand):
            wait = self._gather(one, wait)
        self.decision.waits[one.pk] = wait

    def _give(self, one: Waiting, worker: PoolWorker, keys: tuple[str, ...]) -> None:
        self.decision.assignments.append(Assignment(one.pk, worker.name, keys))
        self._taken.update((worker.name, *keys))
        self._num_held[one.team] += max(len(keys), 1)

    def _best_fit(self, demand: Demand, home: str) -> tuple[PoolWorker, tuple[str, ...]] | None:
        """At home if it can be; where the fewest places are left over; the worker that sees the fewest."""
        best: tuple[tuple[bool, int, int, str], PoolWorker, tuple[str, ...]] | None = None
        for worker, kinds in self._suitable(demand):
            if not self._is_open(worker.name):
                continue
            for places in kinds:
                free = [place.key for place in places if self._is_free(place) and place.key not in self._kept]
                left = len(free) - demand.num_places
                score = (not worker.name.endswith(f"@{home}"), left, len(worker.places), worker.name)
                if left >= 0 and (best is None or score < best[0]):
                    best = score, worker, tuple(free[: demand.num_places])
        if best is not None:
            return best[1:]
        others = [one for one, _ in self._suitable(demand) if one.is_uncounted and self._is_open(one.name)]
        others.sort(key=lambda one: (not one.name.endswith(f"@{home}"), one.name))
        return (others[0], ()) if others else None

    def _suitable(self, demand: Demand) -> list[tuple[PoolWorker, list[list[Place]]]]:
        """Workers on which it could ever run, with their places that suit it."""
        if demand not in self._candidates:
            workers = (worker for worker in self._pool.workers if demand.fits(worker))
            self._candidates[demand] = [(worker, demand.places_of(worker)) for worker in workers]
        return self._candidates[demand]

    def _is_open(self, worker: str) -> bool:
        return worker not in self._taken and worker not in self._kept

    def _is_free(self, place: Place) -> bool:
        return place.key not in self._taken and not place.is_foreign

    def _why(self, demand: Demand) -> Wait:
        workers = self._pool.workers
        if not workers:
            return Wait(Why.NO_WORKER)
        suitable = self._suitable(demand)
        if not suitable:
            sizes = {one.name: max(map(len, demand.places_of(one)), default=0) for one in workers}
            largest = max(sizes, key=sizes.__getitem__)
            return Wait(Why.NEVER_FITS, worker=largest, num_suitable=sizes[largest])
        worker, places = self._nearest(demand)
        num_free = sum(map(self._is_free, places))
        kept = (self._kept[name] for name in (worker.name, *(p.key for p in places)) if name in self._kept)
        kept_for = next(kept, None)
        if kept_for is not None and num_free >= demand.num_places:
            why = Why.KEPT_FOR_OTHER
        elif num_free >= demand.num_places or worker.is_uncounted:
            why = Why.NO_WORKER_FREE
        else:
            why = Why.TOO_FEW_FREE
        return Wait(why, worker.name, num_free, len(places), kept_for=kept_for)

    def _nearest(self, demand: Demand) -> tuple[PoolWorker, list[Place]]:
        """The suitable worker, with its places of one kind, where most are free and not kept for another."""

        def distance(found: tuple[PoolWorker, list[Place]]) -> tuple[bool, int, bool, str]:
            worker, places = found
            open_to_it = [place for place in places if place.key not in self._kept]
            num_free = sum(map(self._is_free, open_to_it))
            lacks = len(open_to_it) < demand.num_places or worker.name in self._kept
            return lacks, -num_free, worker.name in self._taken, worker.name

        enough = (
            (worker, places)
            for worker, kinds in self._suitable(demand)
            for places in kinds or [[]]
            if worker.is_uncounted or len(places) >= demand.num_places
        )
        return min(enough, key=distance)

    def _may_gather(self, demand: Demand) -> bool:
        """One after the other, where they want the same workers: hosts that run empty are paid for."""
        suitable = self._suitable(demand)
        return bool(suitable) and not any(worker.name in self._kept for worker, _ in suitable)

    def _gather(self, one: Waiting, wait: Wait) -> Wait:
        """Keep for it what is free where it comes nearest; what gets free there later is kept then."""
        worker, places = self._nearest(one.demand)
        free = [place.key for place in places if self._is_free(place)]
        self._kept = dict.fromkeys((worker.name, *free[: one.demand.num_places]), one.pk) | self._kept
        self._waits.clear()  # others meet what is kept now
        return Wait(wait.why, worker.name, len(free), len(places), gathers=True)

    def count_passes(self) -> None:
        """Of everything that still waits: later ones, or of lower priority, that took what it could use."""
        order = {one.pk: (-one.priority, place) for place, one in enumerate(self._pool.waiting)}
        left = [one for one in self._pool.waiting if one.pk in self.decision.waits]
        usable = {one.demand: {worker.name for worker, _ in self._suitable(one.demand)} for one in left}
        for given in self.decision.assignments:
            for one in left:
                if order[one.pk] < order[given.pk] and given.worker in usable[one.demand]:
                    self.decision.passed[one.pk] += 1
