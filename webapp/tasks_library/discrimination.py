"""Does a task tell good policies from bad ones?"""

from dataclasses import dataclass
from statistics import StatisticsError, correlation

from django.db.models import Count, Q, Sum

from training.contracts.types import Purpose, Source
from webapp.experiments.models import TaskRecord
from webapp.tasks_library.flags import scored

MIN_POLICIES = 5
"""Fewer say nothing."""
WEAK = 0.1


@dataclass(frozen=True, slots=True)
class Discrimination:
    """The task's scores against those of the rest of its set, policy by policy (experiment and step)."""

    num_policies: int
    value: float | None
    """Corrected item-total correlation, -1 to 1; None with few policies, or where one side is constant."""

    @property
    def is_weak(self) -> bool:
        return self.value is not None and self.value < WEAK


def discrimination_of(task: TaskRecord, team_id: int) -> Discrimination:
    """Over the team's evaluations that had this version; one query."""
    rows = scored(team_id).filter(purpose=Purpose.EVALUATION, source=Source.POLICY)
    of_set = rows.filter(
        task__task_set=task.task_set_id, experiment__in=rows.filter(task=task).values("experiment")
    )
    own = Q(task=task)
    policies = (
        of_set.order_by()
        .values_list("experiment_id", "step")
        .annotate(
            num=Count("pk"),
            total=Sum("score"),
            num_own=Count("pk", filter=own),
            total_own=Sum("score", filter=own),
        )
    )
    pairs = [
        (total_own / num_own, (total - total_own) / (num - num_own))
        for _, _, num, total, num_own, total_own in policies
        if 0 < num_own < num
    ]
    if len(pairs) < MIN_POLICIES:
        return Discrimination(len(pairs), None)
    try:
        return Discrimination(len(pairs), correlation(*zip(*pairs, strict=True)))
    except StatisticsError:  # one side is constant
        return Discrimination(len(pairs), None)
