"""A step's metrics, as its trainer reports them."""

import math

from django.db import transaction

from webapp.experiments.models import Experiment, MetricPoint
from webapp.experiments.queries.streams import experiment_stream
from webapp.live.event_publishing import publish


@transaction.atomic
def record_metrics(
    *, experiment_id: int, attempt: int, step: int, values: dict[str, float], policy_version: int
) -> None:
    """Store one step's values; a resumed attempt overwrites the steps that it repeats."""
    MetricPoint.objects.bulk_create(
        [
            MetricPoint(
                experiment_id=experiment_id, name=name, step=step, value=_storable(value), attempt=attempt
            )
            for name, value in values.items()
        ],
        update_conflicts=True,
        unique_fields=["experiment", "name", "step"],
        update_fields=["value", "attempt"],
    )
    Experiment.objects.filter(pk=experiment_id).update(step=step, policy_version=policy_version)
    publish(
        experiment_stream(experiment_id), "metrics.added", {"step": step, "policy_version": policy_version}
    )


def _storable(value: float) -> float:
    """SQLite has no NaN: it is stored as the infinity that is shown as a gap, too."""
    return math.inf if math.isnan(value) else value
