"""Which waiting experiments start now, where, and why the others wait: a pure function of the pool.

    higher priority -> overdue ones, oldest first -> team that holds fewest places -> place in the queue

Down that order, each experiment gets places of one kind on one worker, where the fewest are left over; one of
several hosts gets them on a worker of each host, all at once or none. One that does not fit waits, and later
ones may take what it could use (backfill). When `MAX_PASSES` of them have, it is overdue: it goes first, and,
one after the other, the places of the worker (or workers) where most of them are free are kept for it.

So nothing starves within a priority: what an overdue experiment gathers only grows, and everything that runs
ends. A priority is a person's word: while higher ones take all that a lower one could use, it waits.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum

from webapp.experiments.placement.pool import (
    CPU,
    Assignment,
    Demand,
    Place,
    Pool,
    PoolWorker,
    Share,
    Waiting,
)

MAX_PASSES = 8
"""Later experiments that may take what an earlier one could use, before it is overdue."""


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
                self._give(one, found)
                return
            wait = self._waits[one.demand] = self._why(one.demand)
        if one.num_passed >= MAX_PASSES and self._may_gather(one.demand):
            wait = self._gather(one, wait)
        self.decision.waits[one.pk] = wait

    def _give(self, one: Waiting, shares: list[Share]) -> None:
        self.decision.assignments.append(Assignment(one.pk, tuple(shares)))
        for share in shares:
            self._taken.update((share.worker, *share.keys))
            self._num_held[one.team] += max(len(share.keys), 1)

    def _best_fit(self, demand: Demand, home: str) -> list[Share] | None:
        """At home if it can be; where the fewest places are left over; the worker that sees the fewest.

        Of several hosts the best worker of each, with places of one kind; fewer hosts only if that will do.
        """
        gangs: dict[str, list[_Fit]] = defaultdict(list)
        for fit in sorted(self._fits(demand, home), key=lambda fit: fit.score):
            gang = gangs[fit.kind]
            if len(gang) < demand.num_hosts and all(fit.is_apart_from(one) for one in gang):
                gang.append(fit)
        most = max(map(len, gangs.values()), default=0)
        if most < demand.fewest_hosts:
            return None
        largest = (gang for gang in gangs.values() if len(gang) == most)
        return [fit.share for fit in min(largest, key=lambda gang: [fit.score for fit in gang])]

    def _fits(self, demand: Demand, home: str) -> Iterator[_Fit]:
        """Wherever a host's part of it fits now."""
        for worker, kinds in self._suitable(demand):
            if not self._is_open(worker.name):
                continue
            away = worker.host != home
            if worker.is_uncounted:
                yield _Fit((True, away, 0, 0, worker.name), CPU, worker.host, Share(worker.name, ()))
            for places in kinds:
                free = [place.key for place in places if self._is_free(place) and place.key not in self._kept]
                left = len(free) - demand.num_places
                if left >= 0:
                    score = (False, away, left, len(worker.places), worker.name)
                    share = Share(worker.name, tuple(free[: demand.num_places]))
                    yield _Fit(score, places[0].kind, worker.host, share)

    def _suitable(self, demand: Demand) -> list[tuple[PoolWorker, list[list[Place]]]]:
        """Workers on which it could ever run, with their places that suit it."""
        if demand not in self._candidates:
            workers = (worker for worker in self._pool.workers if demand.fits(worker))
            found = [(worker, demand.places_of(worker)) for worker in workers]
            self._candidates[demand] = found if _are_enough(demand, found) else []
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
        worker, places = self._nearest(demand)[-1]
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

    def _nearest(self, demand: Demand) -> list[tuple[PoolWorker, list[Place]]]:
        """The suitable worker, with its places of one kind, where most are free and not kept for another.

        Of several hosts one of each, the one that lacks most at the end.
        """

        def distance(found: tuple[PoolWorker, list[Place]]) -> tuple[bool, int, bool, str]:
            worker, places = found
            open_to_it = [place for place in places if place.key not in self._kept]
            num_free = sum(map(self._is_free, open_to_it))
            lacks = len(open_to_it) < demand.num_places or worker.name in self._kept
            return lacks, -num_free, worker.name in self._taken, worker.name

        enough = [
            (worker, places)
            for worker, kinds in self._suitable(demand)
            for places in kinds or [[]]
            if worker.is_uncounted or len(places) >= demand.num_places
        ]
        by_kind: dict[str, dict[str, tuple[PoolWorker, list[Place]]]] = {}
        for worker, places in sorted(enough, key=distance):
            kind = places[0].kind if places else CPU
            by_kind.setdefault(kind, {}).setdefault(worker.host, (worker, places))
        gangs = [list(hosts.values())[: demand.num_hosts] for hosts in by_kind.values()]
        return min(gangs, key=lambda gang: (-len(gang), distance(gang[-1])))

    def _may_gather(self, demand: Demand) -> bool:
        """One after the other, where they want the same workers: hosts that run empty are paid for."""
        suitable = self._suitable(demand)
        return bool(suitable) and not any(worker.name in self._kept for worker, _ in suitable)

    def _gather(self, one: Waiting, wait: Wait) -> Wait:
        """Keep for it what is free where it comes nearest; what gets free there later is kept then."""
        for worker, places in self._nearest(one.demand):
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
            taken = {share.worker for share in given.shares}
            for one in left:
                if order[one.pk] < order[given.pk] and usable[one.demand] & taken:
                    self.decision.passed[one.pk] += 1


@dataclass(frozen=True, slots=True)
class _Fit:
    """Places for one host's part of an experiment."""

    score: tuple[bool, bool, int, int, str]
    """Less is better."""
    kind: str
    host: str
    share: Share

    def is_apart_from(self, other: _Fit) -> bool:
        return self.host != other.host and not set(self.share.keys) & set(other.share.keys)


def _are_enough(demand: Demand, found: list[tuple[PoolWorker, list[list[Place]]]]) -> bool:
    """Whether they are of as many hosts as it needs, with places of one kind."""
    hosts: dict[str, set[str]] = defaultdict(set)
    for worker, kinds in found:
        if worker.is_uncounted:
            hosts[CPU].add(worker.host)
        for places in kinds:
            if len(places) >= demand.num_places:
                hosts[places[0].kind].add(worker.host)
    return any(len(some) >= demand.fewest_hosts for some in hosts.values())
