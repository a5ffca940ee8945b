"""Which checkpoints lie in the place of copies, and from which one an attempt goes on."""

from django.db import transaction
from django.utils import timezone

from webapp.checkpoints.queries.copies import SavedCheckpoint
from webapp.experiments.models import Attempt, CheckpointRecord
from webapp.experiments.services.statuses import record_incident
from webapp.lib.remote_calls import OwnAttempt, OwnCheckpoint, gpu_host


@gpu_host.patient_request
@transaction.atomic
def go_on_from_older(
    attempt_id: OwnAttempt, chosen: SavedCheckpoint, newest: SavedCheckpoint, why: str
) -> None:
    """Record that steps are trained anew, since the newest checkpoint was lost with its host."""
    attempt = Attempt.objects.get(pk=attempt_id)
    Attempt.objects.filter(pk=attempt.pk).update(resumed_step=chosen.step)
    message = (
        f"Attempt {attempt.number} goes on from step {chosen.step}: the checkpoint of step {newest.step}, "
        f"{newest.path}, could not be had ({why})."
    )
    record_incident(attempt.experiment_id, "older_checkpoint", message)


@gpu_host.request
def record_copy(checkpoint_id: OwnCheckpoint, copy_sha256: str) -> None:
    CheckpointRecord.objects.filter(pk=checkpoint_id).update(
        copy_sha256=copy_sha256, copied_at=timezone.now()
    )


@gpu_host.request
def forget_copy(checkpoint_id: OwnCheckpoint) -> None:
    CheckpointRecord.objects.filter(pk=checkpoint_id).update(copy_sha256="", copied_at=None)
