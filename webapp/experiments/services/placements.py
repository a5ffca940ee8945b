"""Writes that follow a placement decision: where an experiment was sent, and how often others passed it."""

from datetime import timedelta

from django.db.models import F, Q
from django.utils import timezone

from webapp.experiments.models import Experiment, ExperimentStatus
from webapp.experiments.placement.decision import Decision
from webapp.experiments.placement.pool import Assignment

UNCLAIMED_AFTER = timedelta(seconds=20)
"""A job that no worker claimed may have died with Redis or its worker: the experiment is placed anew."""


def place_experiment(given: Assignment) -> bool:
    """Hold the places for it from now on; False when it does not wait any more."""
    first, *others = given.shares
    waiting = Experiment.objects.filter(pk=given.pk, status=ExperimentStatus.QUEUED, dispatched_at=None)
    return bool(
        waiting.update(
            dispatched_at=timezone.now(),
            placed_worker=given.worker,
            placed_keys=list(first.keys),
            placed_members=[{"worker": one.worker, "keys": list(one.keys)} for one in others],
        )
    )


def free_placement(experiment_id: int) -> None:
    """Its job was not sent."""
    Experiment.objects.filter(pk=experiment_id, status=ExperimentStatus.QUEUED).update(dispatched_at=None)


def free_unclaimed_placements() -> int:
    """Give back what jobs hold that no worker claimed in time; returns how many."""
    now = timezone.now()
    # A time to come was written before the clock was set back.
    is_late = Q(dispatched_at__lt=now - UNCLAIMED_AFTER) | Q(dispatched_at__gt=now + UNCLAIMED_AFTER)
    return Experiment.objects.filter(is_late, status=ExperimentStatus.QUEUED).update(dispatched_at=None)


def record_passes(decision: Decision) -> None:
    """Count who was passed, for the decisions to come."""
    for pk, number in decision.passed.items():
        Experiment.objects.filter(pk=pk).update(num_passed=F("num_passed") + number)
