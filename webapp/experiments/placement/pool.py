"""What a placement decision depends on, and what it gives: plain values."""

from collections.abc import Sequence
from dataclasses import dataclass

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
    joins_gangs: bool = False
    """Other hosts reach it: it may hold a part of an experiment over several hosts."""
    team: int = 0
    """The only one whose experiments it takes; 0 = all."""

    @property
    def host(self) -> str:
        return self.name.rpartition("@")[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """What an experiment asks of one worker, or of one on each of several hosts."""

    num_places: int = 1
    """On each host."""
    num_hosts: int = 1
    least_hosts: int = 0
    """How many will do when there are not `num_hosts`; 0 = no fewer."""
    needs_gpus: bool = False
    kind: str = ""
    """Words that the GPU's name must contain; "" = any."""
    memory_bytes: int = 0
    """Least memory of each GPU."""
    team: int = 0
    """Whose experiment it is, while some workers take one team's only."""

    @property
    def fewest_hosts(self) -> int:
        return self.least_hosts or self.num_hosts

    def places_of(self, worker: PoolWorker) -> list[list[Place]]:
        """By kind, which are not mixed, those that suit it where there are enough of them."""
        kinds: dict[str, list[Place]] = {}
        for place in worker.places:
            if not (self.needs_gpus and place.kind == CPU) and place.memory_bytes >= self.memory_bytes:
                kinds.setdefault(place.kind, []).append(place)
        return [found for kind, found in kinds.items() if self.kind.lower() in kind.lower()]

    def fits(self, worker: PoolWorker) -> bool:
        """Whether it, or its part of one host, could ever run there."""
        if self.num_hosts > 1 and not worker.joins_gangs:
            return False
        if worker.team not in (0, self.team):
            return False
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
class Share:
    """A worker and its places; none on an uncounted worker."""

    worker: str
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Assignment:
    """Start this experiment there."""

    pk: int
    shares: tuple[Share, ...]
    """Of each host, in the order of their ranks; the first one's worker runs the attempt."""

    @property
    def worker(self) -> str:
        return self.shares[0].worker

    @property
    def keys(self) -> tuple[str, ...]:
        """Of all its hosts."""
        return tuple(key for share in self.shares for key in share.keys)
