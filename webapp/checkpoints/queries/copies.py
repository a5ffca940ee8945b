"""Which checkpoints lie in the place of copies, and from which one an attempt goes on."""

from dataclasses import dataclass
from pathlib import Path

from django.db.models import QuerySet

from webapp.experiments.models import Attempt, CheckpointRecord
from webapp.experiments.queries.checkpoints import MODEL_FOLDER, CheckpointRefused
from webapp.lib.remote_calls import OwnAttempt, gpu_host

MOST_AT_ONCE = 16
"""Records that a worker looks at in one round; the newest first."""


class CheckpointElsewhere(CheckpointRefused):
    """Raised when an experiment would go on from a checkpoint that this host can neither see nor fetch."""


@dataclass(frozen=True, slots=True)
class SavedCheckpoint:
    """What a gpu worker has to know of a recorded checkpoint."""

    pk: int
    step: int
    path: str
    """Where the host that wrote it keeps it."""
    copy_sha256: str
    """Sum of its newest copy's manifest; "" = it has none."""
    is_copied: bool
    """Whether that copy is as it was reported last."""
    copy_prefix: str
    """Where it lies in the place of copies."""


@gpu_host.patient_request
def checkpoints_to_resume(attempt_id: OwnAttempt) -> list[SavedCheckpoint]:
    """Those that are kept, the newest first; none when the attempt is to begin at the beginning."""
    attempt = Attempt.objects.get(pk=attempt_id)
    if attempt.resumed_step is None:
        return []
    kept = CheckpointRecord.objects.filter(experiment_id=attempt.experiment_id, deleted_at=None)
    return _saved(kept.order_by("-id"))


@gpu_host.patient_request
def why_not_here(attempt_id: OwnAttempt, newest: SavedCheckpoint, why: str) -> str:
    """Why the attempt cannot go on, and what helps."""
    attempt = Attempt.objects.get(pk=attempt_id)
    earlier = attempt.experiment.attempts.filter(number__lt=attempt.number).order_by("-number").first()
    where = f" (attempt {earlier.number} ran on {earlier.worker_name})" if earlier else ""
    return (
        f"the checkpoint of step {newest.step}, {newest.path}, is not on the host of {attempt.worker_name}"
        f"{where} and could not be fetched ({why}). Nothing was begun anew. Copy the folder to the same path "
        "here, or drain this worker so that the other host goes on, then resume; with a shared "
        "checkpoints.directory, or DESKHAND_COPIES, neither is needed"
    )


def wanting_copies() -> list[SavedCheckpoint]:
    """Kept checkpoints that were not copied since they were reported."""
    return _saved(CheckpointRecord.objects.filter(deleted_at=None, copied_at=None).order_by("-id"))


def unneeded_copies() -> list[SavedCheckpoint]:
    """Of checkpoints that were deleted."""
    return _saved(CheckpointRecord.objects.exclude(deleted_at=None).exclude(copy_sha256=""))


def copied_checkpoint(model_path: str) -> SavedCheckpoint | None:
    """The one whose folder, or model's folder, `model_path` names, when it has a copy."""
    path = Path(model_path)
    folder = path.parent if path.name == MODEL_FOLDER else path
    found = CheckpointRecord.objects.filter(path=str(folder), deleted_at=None).exclude(copy_sha256="")
    return next(iter(_saved(found.order_by("-id"))), None)


def _saved(rows: QuerySet[CheckpointRecord]) -> list[SavedCheckpoint]:
    return [
        SavedCheckpoint(
            row.pk, row.step, row.path, row.copy_sha256, row.copied_at is not None, row.copy_prefix
        )
        for row in rows[:MOST_AT_ONCE]
    ]
