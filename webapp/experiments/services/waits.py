"""What an experiment waits for: disk space for its next checkpoint, an engine that loads for minutes."""

from django.db import transaction

from webapp.experiments.models import ACTIVE_STATUSES, Experiment, ExperimentStatus
from webapp.experiments.services.statuses import publish_status

WAITS = "Waits for disk space to save a checkpoint: "


def record_disk_wait(experiment_id: int, shortage: str) -> None:
    """Show on its page what is missing, or, with "", that it goes on; says nothing twice."""
    with transaction.atomic():
        row = Experiment.objects.filter(pk=experiment_id, status__in=ACTIVE_STATUSES).first()
        if row is None or (not shortage and not row.message.startswith(WAITS)):
            return
        message = f"{WAITS}{shortage}." if shortage else f"{row.get_status_display()}."
        if row.message != message:
            Experiment.objects.filter(pk=experiment_id).update(message=message)
            publish_status(experiment_id, ExperimentStatus(row.status), message)


def record_start_wait(experiment_id: int, message: str) -> None:
    """Show `message` on its page; does nothing once it has started."""
    with transaction.atomic():
        reason = (
            Experiment.objects.filter(pk=experiment_id, status=ExperimentStatus.STARTING)
            .exclude(message=message)
            .update(message=message)
        )
        if reason:
            publish_status(experiment_id, ExperimentStatus.STARTING, message)
