"""Alarms on the charts: where each began, and the value of its metric from which on it fires."""

from __future__ import annotations

from typing import Any

from django.db.models import Case, FloatField, Max, OuterRef, QuerySet, Subquery, When
from django.urls import reverse

from webapp.experiments.alarms.guards import GUARDS, guard_of
from webapp.experiments.models import AlarmRecord, AlarmStatus, Experiment, MetricPoint

ENTROPY = "entropy_collapse"
"""Its limit is a fall from the experiment's highest entropy."""
NO_THRESHOLD = {"saturated_term", "stale_checkpoint", "rolled_back"}
"""Their limit is no value of a series."""


def with_entropy_before(alarms: QuerySet[AlarmRecord]) -> QuerySet[AlarmRecord]:
    """Each with `entropy_before`: of an entropy that collapsed, the highest until then; else None."""
    metric = GUARDS[ENTROPY].metric
    before = MetricPoint.objects.filter(
        experiment=OuterRef("experiment"), name=metric, step__lt=OuterRef("step")
    )
    highest = before.values("name").annotate(highest=Max("value")).values("highest")
    when = When(name=ENTROPY, then=Subquery(highest))
    return alarms.annotate(entropy_before=Case(when, default=None, output_field=FloatField()))


def threshold_of(alarm: AlarmRecord, entropy_before: float | None) -> float | None:
    """Where the guard's metric crosses its limit, in the metric's own unit; None when no value says it."""
    if alarm.name in NO_THRESHOLD or not guard_of(alarm).metric:
        return None
    if alarm.name == "all_zero_rewards":
        return 0.0  # its limit counts steps
    if alarm.name == "grad_norm_explosion" and alarm.value < 0:
        return None  # a gradient that was not finite crosses no line
    if alarm.name == ENTROPY:
        return None if entropy_before is None else entropy_before * (1 - alarm.limit)
    return alarm.limit


def alarm_marks(experiment: Experiment) -> list[dict[str, Any]]:
    """What charts show of the alarms, as JSON: metric, threshold, and the steps between which they fired."""
    return [
        {
            "name": alarm.name,
            "title": guard_of(alarm).title,
            "metric": guard_of(alarm).metric,
            "threshold": threshold_of(alarm, alarm.entropy_before),  # type: ignore[attr-defined]
            "since": alarm.since_step,
            "last": alarm.step,
            "is_cleared": alarm.status == AlarmStatus.CLEARED,
            "url": reverse("alarm-show", args=[experiment.pk, alarm.name]),
        }
        for alarm in with_entropy_before(experiment.alarms.all())
    ]
