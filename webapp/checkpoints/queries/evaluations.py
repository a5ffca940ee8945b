"""Evaluations on demand of a checkpoint."""

from django.db.models import QuerySet

from webapp.experiments.models import FINAL_STATUSES, CheckpointRecord, Experiment


def unfinished_evaluations(checkpoint: CheckpointRecord) -> QuerySet[Experiment]:
    """Evaluations on demand that wait or run."""
    return checkpoint.evaluated_by.exclude(status__in=FINAL_STATUSES).order_by("id")
