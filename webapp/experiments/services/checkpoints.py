"""Checkpoints that a trainer saved, resumed from and deleted."""

from django.db import transaction
from django.utils import timezone

from training.contracts.trainer_reports import CheckpointReport
from webapp.experiments.models import Attempt, CheckpointRecord
from webapp.experiments.queries.streams import experiment_stream
from webapp.live.event_publishing import publish


@transaction.atomic
def record_checkpoint(
    *, experiment_id: int, report: CheckpointReport, saved_by: Attempt | None = None
) -> None:
    """A checkpoint is complete on disk."""
    values = report.model_dump(exclude={"path", "bytes"}) | {"size_bytes": report.bytes}
    if report.is_best:
        CheckpointRecord.objects.filter(experiment_id=experiment_id).update(is_best=False)
    CheckpointRecord.objects.update_or_create(
        experiment_id=experiment_id,
        path=report.path,
        defaults={**values, "attempt": saved_by, "deleted_at": None, "copied_at": None},
    )
    publish(
        experiment_stream(experiment_id),
        "checkpoint.saved",
        {"step": report.step, "path": report.path[-120:]},
    )


@transaction.atomic
def record_resume(*, experiment_id: int, attempt: int, report: CheckpointReport) -> None:
    """An attempt goes on from a checkpoint; its trainer may have died before it could report that one."""
    known = CheckpointRecord.objects.filter(experiment_id=experiment_id, path=report.path, deleted_at=None)
    if not known.exists():
        record_checkpoint(experiment_id=experiment_id, report=report)
    same = Attempt.objects.filter(experiment_id=experiment_id, number=attempt)
    same.update(resumed_step=report.step)


@transaction.atomic
def record_checkpoint_deleted(*, experiment_id: int, path: str) -> None:
    """An old checkpoint was removed from disk."""
    CheckpointRecord.objects.filter(experiment_id=experiment_id, path=path).update(deleted_at=timezone.now())
    publish(experiment_stream(experiment_id), "checkpoint.deleted", {"path": path[-120:]})
