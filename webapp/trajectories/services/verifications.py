"""What a finished verification says of its task."""

from typing import Any

from django.utils import timezone

from training.contracts.types import Source
from webapp.experiments.models import TaskRecord
from webapp.trajectories.models import Group


def note_verification(group: Group) -> None:
    """Keep the worst score of its places with the task: the oracle's lowest, the highest for doing nothing.

    A place without a score leaves none: every try errored.
    """
    newest: dict[int, float | None] = dict(group.trajectories.order_by("pk").values_list("member", "score"))
    scores = [score for score in newest.values() if score is not None]
    values: dict[str, Any] = {"verified_at": timezone.now()}
    is_whole = len(scores) == group.size
    if group.source == Source.ORACLE:
        values["oracle_score"] = min(scores) if is_whole else None
    elif group.source == Source.SCRIPTED:
        values["idle_score"] = max(scores) if is_whole else None
    TaskRecord.objects.filter(pk=group.task_id).update(**values)
