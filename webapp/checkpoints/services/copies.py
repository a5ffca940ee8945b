"""Which checkpoints lie in the place of copies, and from which one an attempt goes on."""

from django.db import transaction
from django.utils import timezone

from webapp.checkpoints.queries.copies import SavedCheckpoint
from webapp.experiments.models import Attempt, CheckpointRecord
from webapp.experiments.services.statuses import record_incident


@transaction.atomic
def resume_from_older(attempt: Attempt, chosen: SavedCheckpoint, newest: SavedCheckpoint, why: str) -> None:
    """Record that steps are trained anew, since the newest checkpoint was lost with its host."""
    Attempt.objects.filter(pk=attempt.pk).update(resumed_step=chosen.step)
    message = (
        f"Attempt {attempt.number} goes on from step {chosen.step}: the checkpoint of step {newest.step}, "
        f"{newest.path}, could not be had ({why})."
    )
    record_incident(attempt.experiment_id, "older_checkpoint", message)


def record_copy(pk: int, copy_sha256: str) -> None:
    """Its copy is complete."""
    CheckpointRecord.objects.filter(pk=pk).update(copy_sha256=copy_sha256, copied_at=timezone.now())


def forget_copy(pk: int) -> None:
    """Its copy is gone."""
    CheckpointRecord.objects.filter(pk=pk).update(copy_sha256="", copied_at=None)
