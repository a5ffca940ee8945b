"""Attempts of an experiment: which is current, which number comes next, how many crashed."""

from itertools import takewhile

from django.db.models import Max

from webapp.experiments.models import (
    Attempt,
    AttemptStatus,
    CheckpointRecord,
)


def step_to_resume_from(experiment_id: int) -> int | None:
    """Of the newest checkpoint that is still there, where the trainer goes on; None when there is none."""
    kept = CheckpointRecord.objects.filter(experiment_id=experiment_id, deleted_at=None)
    return kept.order_by("-id").values_list("step", flat=True).first()


def next_attempt_number(experiment_id: int) -> int:
    """Number that the next execution will carry."""
    last = Attempt.objects.filter(experiment_id=experiment_id).aggregate(last=Max("number"))["last"]
    return (last or 0) + 1


def crash_limit_reached(*, experiment_id: int, max_restarts: int) -> bool:
    """True when the attempts since the last checkpoint used up the restarts."""
    newest = (
        CheckpointRecord.objects.filter(experiment_id=experiment_id).order_by("-id").values("created_at")[:1]
    )
    crashes = Attempt.objects.filter(
        experiment_id=experiment_id, status__in=[AttemptStatus.CRASHED, AttemptStatus.LOST]
    )
    since = newest[0]["created_at"] if newest else None
    if since:
        crashes = crashes.filter(ended_at__gt=since)
    return crashes.count() > max_restarts


def num_incomplete_in_a_row(experiment_id: int) -> int:
    statuses = Attempt.objects.filter(experiment_id=experiment_id).order_by("-number")
    incomplete = takewhile(
        lambda status: status == AttemptStatus.INCOMPLETE, statuses.values_list("status", flat=True)
    )
    return sum(1 for _ in incomplete)
