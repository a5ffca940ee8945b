"""The episodes of an evaluation: the last try of each place of its groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from django.db.models import F

from training.contracts.types import Source
from webapp.experiments.models import Evaluation, EvaluationTasks
from webapp.trajectories.models import Trajectory

if TYPE_CHECKING:

    class Episode(Trajectory):
        own_max_turns: int | None
        """The task's own limit."""


def episodes_of(evaluation: Evaluation) -> list[Episode]:
    """In the order of groups and places, also those that errored for good; none where an older version kept
    no results by task, or where they were deleted since."""
    kept = EvaluationTasks.objects.filter(evaluation=evaluation).first()
    groups = {outcome[2] for outcome in kept.results.values()} if kept else set()
    rows = Trajectory.objects.filter(group__in=groups).exclude(source=Source.HUMAN)
    rows = rows.annotate(own_max_turns=F("task__spec__max_turns"))
    last: dict[tuple[int, int], Episode] = {}
    for row in rows.select_related("task").defer("task__spec").order_by("group_id", "member", "tries", "id"):
        last[row.group_id, row.member] = cast("Episode", row)
    return list(last.values())
