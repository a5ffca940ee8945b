"""The episodes of an evaluation: the last try of each place of its groups."""

from __future__ import annotations

from training.contracts.types import Source
from webapp.experiments.models import Evaluation, EvaluationTasks
from webapp.trajectories.models import Trajectory


def episodes_of(evaluation: Evaluation) -> list[Trajectory]:
    """In the order of groups and places, also those that errored for good; none where an older version kept
    no results by task, or where they were deleted since."""
    kept = EvaluationTasks.objects.filter(evaluation=evaluation).first()
    groups = {outcome[2] for outcome in kept.results.values()} if kept else set()
    rows = Trajectory.objects.filter(group__in=groups).exclude(source=Source.HUMAN)
    last: dict[tuple[int, int], Trajectory] = {}
    for row in rows.select_related("task").defer("task__spec").order_by("group_id", "member", "tries", "id"):
        last[row.group_id, row.member] = row
    return list(last.values())
