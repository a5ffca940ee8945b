"""How an experiment's status changes, and how its pages hear of it.

Every change is one atomic claim along EXPERIMENT_TRANSITIONS, so two workers, a redelivered job and a person
clicking twice cannot both win.
"""

from typing import Any

from django.db import transaction
from django.utils import timezone

from webapp.experiments.models import (
    EXPERIMENT_TRANSITIONS,
    Experiment,
    ExperimentStatus,
    Incident,
)
from webapp.experiments.queries.streams import experiment_stream, source_of_evaluation
from webapp.lib.transitions import sources_of
from webapp.live.event_publishing import publish


def change_status(
    experiment_id: int,
    to: ExperimentStatus,
    *,
    sources: set[ExperimentStatus] | None = None,
    message: str = "",
    **values: Any,
) -> bool:
    """Move an experiment along the transition table; False when its status has changed meanwhile."""
    allowed = sources_of(to, EXPERIMENT_TRANSITIONS)
    if sources is not None:
        allowed &= sources
    if to.is_final():
        values.setdefault("ended_at", timezone.now())
    with transaction.atomic():
        moved = Experiment.objects.filter(pk=experiment_id, status__in=allowed).update(
            status=to, message=message, **values
        )
        if moved:
            publish_status(experiment_id, to, message)
    return bool(moved)


def publish_status(experiment_id: int, status: ExperimentStatus, message: str) -> None:
    """Tell open pages; last in a transaction."""
    payload = {"experiment": experiment_id, "status": status, "message": message}
    publish(experiment_stream(experiment_id), "experiment.updated", payload)
    if source := source_of_evaluation(experiment_id):
        result = {"experiment": experiment_id, "status": status}
        publish(experiment_stream(source), "checkpoint.evaluated", result)
    # The queue is everybody's: no words of a team travel on it.
    publish("queue", "experiment.updated", {"experiment": experiment_id, "status": status})


def record_incident(experiment_id: int, kind: str, message: str) -> None:
    """Record something that happened, for the experiment's page."""
    with transaction.atomic():
        Incident.objects.create(experiment_id=experiment_id, kind=kind, message=message)
        publish(experiment_stream(experiment_id), "incident.added", {"kind": kind, "message": message})
