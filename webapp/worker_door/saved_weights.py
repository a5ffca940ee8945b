"""Checkpoints that attempts go on from, their copies for other hosts, and exports."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from webapp.experiments.checkpoints import checkpoint_copies, exports
from webapp.experiments.checkpoints.checkpoint_copies import SavedCheckpoint
from webapp.experiments.models import Attempt, CheckpointExport, CheckpointRecord
from webapp.reports.model_card import model_card
from webapp.worker_door.rows import (
    NotYours,
    caller,
    gpu_host,
    own_attempt,
    own_workers,
    require_host,
    require_worker,
    works_for,
)


@dataclass(frozen=True, slots=True)
class WaitingExport:
    """An export that waits for a worker."""

    pk: int
    checkpoint: str
    """The checkpoint's folder on the host that wrote it."""
    is_for_anyone: bool
    """Also for workers that cannot see that folder."""


@dataclass(frozen=True, slots=True)
class HeldExport:
    """What its gpu worker has to know of an export."""

    pk: int
    checkpoint: str
    path: str
    """Where it is, or is to be, written."""
    dtype: str
    copy_prefix: str
    """Where its copy lies in the place of copies."""


@gpu_host.patient_question
def checkpoints_to_resume(attempt_id: int) -> list[SavedCheckpoint]:
    """Those that are kept, the newest first; none when the attempt is to begin at the beginning."""
    return checkpoint_copies.checkpoints_to_resume(own_attempt(attempt_id))


@gpu_host.patient_question
def why_not_here(attempt_id: int, newest: SavedCheckpoint, why: str) -> str:
    """Why the attempt cannot go on, and what helps."""
    return str(checkpoint_copies.not_on_this_host(own_attempt(attempt_id), newest, why))


@gpu_host.patient_question
def go_on_from_older(attempt_id: int, chosen: SavedCheckpoint, newest: SavedCheckpoint, why: str) -> None:
    """Record that steps are trained anew, since the newest checkpoint was lost with its host."""
    checkpoint_copies.go_on_from_older(own_attempt(attempt_id), chosen, newest, why)


@gpu_host.patient_question
def copied_checkpoint(model_path: str) -> SavedCheckpoint | None:
    """The one whose folder, or model's folder, `model_path` names, when it has a copy."""
    found = checkpoint_copies.copied_checkpoint(model_path)
    if found is None or not works_for(CheckpointRecord.objects.get(pk=found.pk).experiment.team_id):
        return None
    return found


@gpu_host.question
def wanting_copies() -> list[SavedCheckpoint]:
    """Kept checkpoints that were not copied since they were reported; of a joined host its own."""
    return [one for one in checkpoint_copies.wanting_copies() if _wrote(one.pk)]


@gpu_host.question
def record_copy(checkpoint_id: int, copy_sha256: str) -> None:
    """Its copy is complete."""
    _require_wrote(checkpoint_id)
    checkpoint_copies.record_copy(checkpoint_id, copy_sha256)


@gpu_host.question
def unneeded_copies() -> list[SavedCheckpoint]:
    """Of checkpoints that were deleted."""
    return [one for one in checkpoint_copies.unneeded_copies() if _wrote(one.pk)]


@gpu_host.question
def forget_copy(checkpoint_id: int) -> None:
    """Its copy is gone."""
    _require_wrote(checkpoint_id)
    checkpoint_copies.forget_copy(checkpoint_id)


@gpu_host.question
def waiting_exports(worker_name: str) -> list[WaitingExport]:
    """The oldest ones; of a joined host only those of checkpoints that it wrote."""
    require_worker(worker_name)
    return [
        WaitingExport(row.pk, row.checkpoint.path, exports.is_for_anyone(row))
        for row in exports.waiting_exports()
        if _wrote(row.checkpoint_id)
    ]


@gpu_host.question
def claim_export(export_id: int, worker_name: str, host: str, folder: str) -> HeldExport | None:
    """To be written to a new folder below `folder`; None when another worker has it."""
    require_host(host)
    row = CheckpointExport.objects.select_related("checkpoint").get(pk=export_id)
    _require_wrote(row.checkpoint_id)
    claimed = exports.claim_export(export=row, worker_name=worker_name, host=host, folder=Path(folder))
    return _held(row) if claimed else None


@gpu_host.question
def card_of(export_id: int) -> str:
    """The model card, as Markdown."""
    row = _own_export(export_id)
    return model_card(row.checkpoint, row.dtype)


@gpu_host.question
def report_export(export_id: int, done_bytes: int, total_bytes: int) -> None:
    """Heartbeat of a running export, with its progress."""
    exports.report_export(export=_own_export(export_id), done_bytes=done_bytes, total_bytes=total_bytes)


@gpu_host.question
def finish_export(export_id: int, size_bytes: int) -> None:
    """Its folder is complete."""
    exports.finish_export(export=_own_export(export_id), size_bytes=size_bytes)


@gpu_host.question
def fail_export(export_id: int, message: str) -> None:
    """It could not be written; `message` says what to do."""
    exports.fail_export(export=_own_export(export_id), message=message)


@gpu_host.question
def uncopied_exports(host: str) -> list[HeldExport]:
    """Finished ones of `host` that other hosts cannot have yet."""
    require_host(host)
    return [_held(row) for row in exports.uncopied_exports(host=host)]


@gpu_host.question
def record_export_copy(export_id: int, copy_sha256: str) -> None:
    """Its copy is complete."""
    exports.record_export_copy(export=_own_export(export_id), copy_sha256=copy_sha256)


@gpu_host.question
def removable_exports(host: str) -> list[HeldExport]:
    """Exports on `host` whose files are to be removed."""
    require_host(host)
    return [_held(row) for row in exports.removable_exports(host=host)]


@gpu_host.question
def confirm_removal(export_id: int) -> None:
    """Its files are gone."""
    exports.confirm_removal(export=_own_export(export_id))


def _held(row: CheckpointExport) -> HeldExport:
    return HeldExport(row.pk, row.checkpoint.path, row.path, row.dtype, row.copy_prefix)


def _own_export(export_id: int) -> CheckpointExport:
    row = CheckpointExport.objects.select_related("checkpoint").get(pk=export_id)
    require_host(row.host)
    return row


def _wrote(checkpoint_id: int) -> bool:
    if not caller.get():
        return True
    mine = own_workers().values("name")
    return Attempt.objects.filter(experiment__checkpoints=checkpoint_id, worker_name__in=mine).exists()


def _require_wrote(checkpoint_id: int) -> None:
    if not _wrote(checkpoint_id):
        raise NotYours(f"checkpoint {checkpoint_id} is not of {caller.get()}")
