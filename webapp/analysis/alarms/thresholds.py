"""Alarms on the charts: where each began, and the value of its metric from which on it fires."""

from typing import Any

from django.db.models import Max
from django.urls import reverse

from webapp.experiments.models import AlarmRecord, AlarmStatus, Experiment

NO_THRESHOLD = {"no_update", "saturated_term", "stale_checkpoint", "rolled_back", "endless_successes"}
"""Their limit is no value of a series."""


def threshold_of(alarm: AlarmRecord) -> float | None:
    """Where the guard's metric crosses its limit, in the metric's own unit; None when no value says it."""
    if alarm.name in NO_THRESHOLD or not alarm.guard.metric:
        return None
    if alarm.name == "all_zero_rewards":
        return 0.0  # its limit counts steps
    if alarm.name == "grad_norm_explosion" and alarm.value < 0:
        return None  # a gradient that was not finite crosses no line
    if alarm.name == "entropy_collapse":
        return _entropy_floor(alarm)
    return alarm.limit


def _entropy_floor(alarm: AlarmRecord) -> float | None:
    """The guard's limit is a fall from the experiment's highest entropy."""
    earlier = alarm.experiment.metrics.filter(name=alarm.guard.metric, step__lt=alarm.step)
    highest = earlier.aggregate(highest=Max("value"))["highest"]
    return None if highest is None else highest * (1 - alarm.limit)


def alarm_marks(experiment: Experiment) -> list[dict[str, Any]]:
    """What charts show of the alarms, as JSON: metric, threshold, and the steps between which they fired."""
    return [
        {
            "name": alarm.name,
            "title": alarm.guard.title,
            "metric": alarm.guard.metric,
            "threshold": threshold_of(alarm),
            "since": alarm.since_step,
            "last": alarm.step,
            "is_cleared": alarm.status == AlarmStatus.CLEARED,
            "url": reverse("alarm-show", args=[experiment.pk, alarm.name]),
        }
        for alarm in experiment.alarms.select_related("experiment")
    ]
