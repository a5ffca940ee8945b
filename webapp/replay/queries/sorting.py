"""Orders of the buffer that no column holds: how rare a task is, how it goes now, how old the policy is."""

from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

from django.db.models import Count

from training.contracts.types import Source
from webapp.experiments.models import Experiment
from webapp.experiments.queries.weight_lineage import Place, WeightLineage
from webapp.replay.filters import EntryFilter
from webapp.replay.fit_for_experiments import target_experiment
from webapp.replay.models import USABLE_VERDICTS, ReplayEntry
from webapp.replay.queries.task_rates import Rate, recent_rates

COLUMNS = (
    "pk",
    "trajectory__task_id",
    "trajectory__num_turns",
    "trajectory__reward",
    "trajectory__experiment_id",
    "trajectory__policy_version",
    "trajectory__source",
    "has_bad_turns",
    "cluster",
)


class Facts(NamedTuple):
    """What an order may look at of one entry."""

    pk: int
    task_id: int
    num_turns: int
    reward: float | None
    experiment_id: int | None
    policy_version: int | None
    source: str
    has_bad_turns: bool = False
    cluster: int | None = None


class Surroundings:
    """What orders and lists know of a team beside the entries themselves; each is read when it is needed."""

    def __init__(self, team_id: int) -> None:
        self._team_id = team_id

    @cached_property
    def rates(self) -> dict[int, Rate]:
        """Task -> how it goes now."""
        return recent_rates(self._team_id)

    @cached_property
    def usable(self) -> dict[int, int]:
        """Task -> accepted and gold entries."""
        return usable_by_task(self._team_id)

    @cached_property
    def target(self) -> Experiment | None:
        """The team's newest experiment, whose policy the others are measured against."""
        return target_experiment(self._team_id)

    @cached_property
    def lineage(self) -> WeightLineage:
        return WeightLineage(self._team_id)

    def age(self, facts: Facts) -> int | None:
        """Policy versions up to the target's; None when unknown, or no policy sampled it."""
        if self.target is None or facts.experiment_id is None or facts.policy_version is None:
            return None
        if facts.source != Source.POLICY:
            return None
        here = Place(self.target.pk, self.target.policy_version)
        return self.lineage.versions_between(Place(facts.experiment_id, facts.policy_version), here)

    def share(self, task_id: int) -> float | None:
        """Of the task's newest tries, those that solved it."""
        rate = self.rates.get(task_id)
        return rate.share if rate else None


def usable_by_task(team_id: int) -> dict[int, int]:
    """Task -> accepted and gold entries of it."""
    rows = ReplayEntry.objects.filter(team_id=team_id, verdict__in=USABLE_VERDICTS)
    return dict(rows.order_by().values_list("trajectory__task_id").annotate(num=Count("id")))


def ordered_ids(
    team_id: int, chosen: EntryFilter, around: Surroundings, *, after: int | None = None
) -> list[int]:
    """The entries of a filter in its order, bad turns last; those behind entry `after` alone when
    it is given.

    `after` need not be in the filter any more: it was labelled meanwhile.
    """
    everything = ReplayEntry.objects.filter(team_id=team_id)
    found = [Facts(*row) for row in chosen.apply(everything).order_by().values_list(*COLUMNS)]
    chosen_key = _key(chosen.sort, around)

    def key(facts: Facts) -> tuple[bool, Any]:
        return facts.has_bad_turns, chosen_key(facts)

    if chosen.by_cluster:
        found = _first_of_each(found, key)
    keyed = sorted((key(facts), -facts.pk) for facts in found)
    if after is None:
        return [-negative for _, negative in keyed]
    row = everything.filter(pk=after).values_list(*COLUMNS).first()
    place = (key(Facts(*row)), -after) if row else None
    return [-negative for value, negative in keyed if place is None or (value, negative) > place]


def _first_of_each(found: list[Facts], key: Callable[[Facts], Any]) -> list[Facts]:
    """Of every cluster the entry that comes first; those that were not compared yet stand for themselves."""
    first: dict[int, Facts] = {}
    for facts in sorted(found, key=lambda one: (key(one), -one.pk), reverse=True):
        first[facts.pk if facts.cluster is None else -facts.cluster] = facts
    return list(first.values())


def _key(sort: str, around: Surroundings) -> Callable[[Facts], Any]:
    """What to sort by, the smallest first; equal ones have the newest first."""
    match sort:
        case "rarity":
            return lambda facts: around.usable.get(facts.task_id, 0)
        case "failing":
            return lambda facts: _first_known(around.share(facts.task_id))
        case "stale":
            return lambda facts: _first_known(_negative(around.age(facts)))
        case "shortest":
            return lambda facts: facts.num_turns
        case "longest":
            return lambda facts: -facts.num_turns
        case "best":
            return lambda facts: _first_known(_negative(facts.reward))
        case "worst":
            return lambda facts: _first_known(facts.reward)
    return lambda facts: 0


def _negative(value: float | None) -> float | None:
    return None if value is None else -value


def _first_known(value: float | None) -> tuple[bool, float]:
    """Unknown values come last."""
    return value is None, value or 0.0
