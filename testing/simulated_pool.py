"""A pool of GPU hosts in simulated time, run by the product's own placement decision."""

from __future__ import annotations

import heapq
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from webapp.experiments.placement.decision import Decision, decide
from webapp.experiments.placement.pool import Demand, Held, Place, Pool, PoolWorker, Waiting


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedExperiment:
    """When it is queued, what it asks for, how long it runs."""

    pk: int
    submit_s: float = 0.0
    takes_s: float
    num_gpus: int
    """On each host."""
    num_hosts: int = 1
    team: int = 0
    priority: int = 0


def hosts_with_gpus(num_hosts: int, num_gpus: int, num_workers: int | None = None) -> list[PoolWorker]:
    """Hosts of one kind, each with workers that all see all of its GPUs (one for each GPU by default)."""
    return [
        PoolWorker(
            name=f"gpu{number}@host{host}",
            places=tuple(
                Place(key=f"host{host}/{gpu}", kind="H100", memory_bytes=80 * 10**9)
                for gpu in range(num_gpus)
            ),
            joins_gangs=True,
        )
        for host in range(num_hosts)
        for number in range(num_workers or num_gpus)
    ]


@dataclass(slots=True)
class SimulatedPool:
    """Run it with `run`; the record of what happened is in the fields."""

    workers: Sequence[PoolWorker]
    now: float = 0.0
    held: dict[int, list[Held]] = field(default_factory=dict)
    """Of each host that an experiment runs on."""
    waiting: dict[int, Waiting] = field(default_factory=dict)
    started_at: dict[int, float] = field(default_factory=dict)
    ended_at: dict[int, float] = field(default_factory=dict)
    decision_s: list[float] = field(default_factory=list)
    most_passed: int = 0

    def run(self, experiments: Iterable[SimulatedExperiment], until_s: float = float("inf")) -> None:
        """Until all have ended, or until `until_s`."""
        known = {one.pk: one for one in experiments}
        coming = sorted(known.values(), key=lambda one: (one.submit_s, one.pk), reverse=True)
        ends: list[tuple[float, int]] = []
        while coming or ends:
            self.now = min([one.submit_s for one in coming[-1:]] + [at for at, _ in ends[:1]])
            if self.now > until_s:
                return
            while ends and ends[0][0] <= self.now:
                _, pk = heapq.heappop(ends)
                del self.held[pk]
                self.ended_at[pk] = self.now
            while coming and coming[-1].submit_s <= self.now:
                self._queue(coming.pop())
            for pk in self.decide():
                heapq.heappush(ends, (self.now + known[pk].takes_s, pk))

    def _queue(self, one: SimulatedExperiment) -> None:
        demand = Demand(num_places=one.num_gpus, num_hosts=one.num_hosts, needs_gpus=True)
        self.waiting[one.pk] = Waiting(pk=one.pk, team=one.team, priority=one.priority, demand=demand)

    def pool(self) -> Pool:
        held = [one for some in self.held.values() for one in some]
        return Pool(workers=self.workers, held=held, waiting=list(self.waiting.values()))

    def decide(self) -> list[int]:
        """Take one decision and start what it says; returns what started."""
        began = time.thread_time()
        decision = decide(self.pool())
        self.decision_s.append(time.thread_time() - began)
        return self.apply(decision)

    def apply(self, decision: Decision) -> list[int]:
        for given in decision.assignments:
            one = self.waiting.pop(given.pk)
            self.held[one.pk] = [
                Held(pk=one.pk, team=one.team, worker=share.worker, keys=frozenset(share.keys))
                for share in given.shares
            ]
            self.started_at[one.pk] = self.now
        for pk, number in decision.passed.items():
            one = self.waiting[pk]
            self.waiting[pk] = Waiting(
                pk=pk, team=one.team, priority=one.priority, demand=one.demand,
                num_passed=one.num_passed + number,
            )  # fmt: skip
            self.most_passed = max(self.most_passed, one.num_passed + number)
        return [given.pk for given in decision.assignments]
