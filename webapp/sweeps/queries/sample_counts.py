"""How many samples stand behind what the arms of a sweep are judged by."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Q, Sum

from training.contracts.types import Purpose
from webapp.experiments.models import Evaluation, Experiment
from webapp.experiments.queries.rows_behind_resume import lost_groups
from webapp.experiments.sweep_plan import GREEDY, SAMPLED, SweepPlan


@dataclass(frozen=True, slots=True)
class Samples:
    """Trajectories that a seed's value was counted over."""

    num: int
    num_success: float | None = None
    """None where the metric is no share of them."""


def samples_of(plan: SweepPlan, windows: Mapping[int, Sequence[int]]) -> dict[int, Samples]:
    """experiment id -> what its value is counted over, from the steps that it is the mean of; one query."""
    if plan.metric in (GREEDY, SAMPLED):
        return _of_evaluations(plan.metric, windows)
    if not plan.metric.startswith("rollout/"):
        return {}
    return _of_rollouts(plan, windows)


def _of_evaluations(metric: str, windows: Mapping[int, Sequence[int]]) -> dict[int, Samples]:
    rows = Evaluation.objects.filter(experiment_id__in=windows).defer("eyes").order_by("id")
    rows = rows.filter(temperature=0) if metric == GREEDY else rows.exclude(temperature=0)
    return {
        one.experiment_id: Samples(one.num_samples, one.shown.won)
        for one in rows
        if one.step in windows[one.experiment_id]
    }


def _of_rollouts(plan: SweepPlan, windows: Mapping[int, Sequence[int]]) -> dict[int, Samples]:
    groups: Any = Experiment._meta.get_field("groups").related_model
    of_steps = Q(pk__in=[])
    for pk, steps in windows.items():
        of_steps |= Q(experiment=pk, step__in=steps)
    rows = groups.objects.filter(of_steps, purpose=Purpose.TRAIN).exclude(lost_groups()).order_by()
    found: dict[int, int] = defaultdict(int)
    for pk, num in rows.values_list("experiment").annotate(num=Sum("num_scored")):
        found[pk] += num or 0
    return {pk: Samples(num) for pk, num in found.items() if num}
