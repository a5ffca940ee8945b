"""What an experiment waits for: disk space for its next checkpoint, an engine that loads for minutes."""

from django.db import transaction

from webapp.experiments.models import ACTIVE_STATUSES, Attempt, Experiment, ExperimentStatus
from webapp.experiments.services.statuses import publish_status
from webapp.lib.remote_calls import OwnAttempt, gpu_host

WAITS = "Waits for disk space to save a checkpoint: "


@gpu_host.report
def tell_disk_wait(attempt_id: OwnAttempt, shortage: str) -> None:
    """What its next checkpoint waits for, or, with "", that it goes on; says nothing twice."""
    experiment_id = _experiment_of(attempt_id)
    with transaction.atomic():
        row = Experiment.objects.filter(pk=experiment_id, status__in=ACTIVE_STATUSES).first()
        if row is None or (not shortage and not row.message.startswith(WAITS)):
            return
        message = f"{WAITS}{shortage}." if shortage else f"{row.get_status_display()}."
        if row.message != message:
            Experiment.objects.filter(pk=experiment_id).update(message=message)
            publish_status(experiment_id, ExperimentStatus(row.status), message)


@gpu_host.report
def tell_start(attempt_id: OwnAttempt, message: str) -> None:
    experiment_id = _experiment_of(attempt_id)
    with transaction.atomic():
        reason = (
            Experiment.objects.filter(pk=experiment_id, status=ExperimentStatus.STARTING)
            .exclude(message=message)
            .update(message=message)
        )
        if reason:
            publish_status(experiment_id, ExperimentStatus.STARTING, message)


def _experiment_of(attempt_id: int) -> int:
    return Attempt.objects.values_list("experiment_id", flat=True).get(pk=attempt_id)
