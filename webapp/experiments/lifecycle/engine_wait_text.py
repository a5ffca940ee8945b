"""What a starting experiment waits for: an engine may load and compile for minutes."""

from __future__ import annotations

from django.db import transaction

from webapp.experiments.lifecycle.status_changes import publish_status
from webapp.experiments.models import Experiment, ExperimentStatus


def tell_start(experiment_id: int, message: str) -> None:
    """Show `message` on its page; does nothing once it has started."""
    with transaction.atomic():
        told = (
            Experiment.objects.filter(pk=experiment_id, status=ExperimentStatus.STARTING)
            .exclude(message=message)
            .update(message=message)
        )
        if told:
            publish_status(experiment_id, ExperimentStatus.STARTING, message)
