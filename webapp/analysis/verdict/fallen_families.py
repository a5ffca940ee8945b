"""Families that fell in a run: fewer of their held-out tasks are solved than before it, beyond chance."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from training.contracts.outcome import SuccessRule
from training.statistics.paired_statistics import SIGNIFICANT_P, Outcome, paired_change
from webapp.analysis.evaluations.success_pairs import (
    SuccessPair,
    TaskOutcomes,
    at_limit,
    task_outcomes,
)
from webapp.experiments.models import Evaluation, Experiment, TaskRecord

LEAST_FALL = 0.2
"""Of the share of a family: smaller falls are left to charts and tables."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FallenFamily:
    """One of them, by shares of samples that were solved."""

    name: str
    kind: str
    """Greedy or sampled."""
    before: float
    after: float
    num_at_limit: int
    """More of the newest samples, where success needs an end: a limit ended them in the state."""


def fallen_families(experiment: Experiment, before: SuccessPair, newest: SuccessPair) -> list[FallenFamily]:
    """By the paired test over the tasks of each family, its p times the number of families.

    Empty where all families fell: the outcome says so. Few queries where one fell, none elsewhere.
    """
    ends = ((before.sampled, newest.sampled), (before.greedy, newest.greedy))
    pairs = [(first, last) for first, last in ends if first and last]
    names = sorted({name for pair in pairs for name in _fallen(*pair)})
    if not names:
        return []
    outcomes = task_outcomes(one for pair in pairs for one in pair)
    is_by_end = outcomes.rule is SuccessRule.ENDED
    tasks = _tasks(experiment, names)
    found: dict[str, FallenFamily] = {}
    for first, last in pairs:
        for name in names:
            own = outcomes.of(tasks.get(name, set()))
            if name not in found and _has_fallen(own, first, last):
                found[name] = FallenFamily(
                    name=name,
                    kind=last.kind,
                    before=_share(own[first.pk]),
                    after=_share(own[last.pk]),
                    num_at_limit=sum(map(at_limit, own[last.pk].values())) if is_by_end else 0,
                )
    is_all = found.keys() >= pairs[0][1].per_family.keys()
    return [] if is_all else list(found.values())


def _fallen(first: Evaluation, last: Evaluation) -> list[str]:
    """Families that may be lost, by their sums alone."""
    before, after = first.solved_by_family, last.solved_by_family
    return [name for name in before.keys() & after.keys() if before[name] - after[name] >= LEAST_FALL]


def _tasks(experiment: Experiment, families: Sequence[str]) -> dict[str, set[str]]:
    """Family -> its tasks in the run's set."""
    rows = TaskRecord.objects.filter(
        task_set__name=experiment.settings.tasks.task_set, family__in=families
    ).values_list("family", "task_id")
    found: dict[str, set[str]] = {}
    for family, task in rows:
        found.setdefault(family, set()).add(task)
    return found


def _has_fallen(own: TaskOutcomes, first: Evaluation, last: Evaluation) -> bool:
    """Beyond chance."""
    change = paired_change(own.get(first.pk, {}), own.get(last.pk, {}))
    if change is None or change.difference > -LEAST_FALL:
        return False
    return change.p * len(last.per_family) <= SIGNIFICANT_P


def _share(outcomes: Mapping[str, Outcome]) -> float:
    return sum(one[0] for one in outcomes.values()) / sum(one[1] for one in outcomes.values())
