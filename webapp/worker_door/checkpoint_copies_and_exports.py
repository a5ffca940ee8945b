"""Checkpoints that attempts go on from, their copies for other hosts, and exports."""

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from django.utils import timezone

from webapp.checkpoints.queries import copies as copy_queries
from webapp.checkpoints.queries.copies import CheckpointElsewhere as CheckpointElsewhere
from webapp.checkpoints.queries.copies import SavedCheckpoint as SavedCheckpoint
from webapp.checkpoints.queries.copies import checkpoints_to_resume as checkpoints_to_resume
from webapp.checkpoints.queries.copies import why_not_here as why_not_here
from webapp.checkpoints.services import exports
from webapp.checkpoints.services.copies import forget_copy as forget_copy
from webapp.checkpoints.services.copies import go_on_from_older as go_on_from_older
from webapp.checkpoints.services.copies import record_copy as record_copy
from webapp.checkpoints.services.exports import confirm_removal as confirm_removal
from webapp.checkpoints.services.exports import fail_export as fail_export
from webapp.checkpoints.services.exports import finish_export as finish_export
from webapp.checkpoints.services.exports import record_export_copy as record_export_copy
from webapp.checkpoints.services.exports import report_export as report_export
from webapp.experiments.models import CheckpointExport, CheckpointRecord, ExportStatus
from webapp.lib.remote_calls import (
    OwnExport,
    OwnHost,
    OwnWorker,
    WaitingExportId,
    gpu_host,
)
from webapp.reports.model_card import model_card
from webapp.worker_door.ownership import took_part, works_for, wrote

OTHERS_FIRST = timedelta(seconds=60)
"""So long workers that cannot see the checkpoint's folder leave an export to others."""


@dataclass(frozen=True, slots=True)
class WaitingExport:
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


@gpu_host.patient_request
def copied_checkpoint(model_path: str) -> SavedCheckpoint | None:
    """The one whose folder, or model's folder, `model_path` names, when it has a copy."""
    found = copy_queries.copied_checkpoint(model_path)
    if found is None or not works_for(CheckpointRecord.objects.get(pk=found.pk).experiment.team_id):
        return None
    return found


@gpu_host.request
def wanting_copies() -> list[SavedCheckpoint]:
    """Kept checkpoints that were not copied since they were reported; of a joined host its own."""
    return [one for one in copy_queries.wanting_copies() if wrote(one.pk)]


@gpu_host.request
def unneeded_copies() -> list[SavedCheckpoint]:
    """Of checkpoints that were deleted."""
    return [one for one in copy_queries.unneeded_copies() if wrote(one.pk)]


@gpu_host.request
def waiting_exports(worker_name: OwnWorker) -> list[WaitingExport]:
    """The oldest ones; of a joined host only those of experiments that it took part in."""
    queued = CheckpointExport.objects.filter(status=ExportStatus.QUEUED).select_related("checkpoint")
    return [
        WaitingExport(row.pk, row.checkpoint.path, row.created_at <= timezone.now() - OTHERS_FIRST)
        for row in queued.order_by("id")[:8]
        if took_part(row.checkpoint_id)
    ]


@gpu_host.request
def claim_export(
    export_id: WaitingExportId, worker_name: OwnWorker, host: OwnHost, folder: str
) -> HeldExport | None:
    """To be written to a new folder below `folder`; None when another worker has it."""
    row = CheckpointExport.objects.select_related("checkpoint").get(pk=export_id)
    claimed = exports.claim_export(export=row, worker_name=worker_name, host=host, folder=Path(folder))
    return _held(row) if claimed else None


@gpu_host.request
def card_of(export_id: OwnExport) -> str:
    """The model card, as Markdown."""
    row = exports.export_row(export_id)
    return model_card(row.checkpoint, row.dtype)


@gpu_host.request
def uncopied_exports(host: OwnHost) -> list[HeldExport]:
    """Finished ones of `host` that other hosts cannot have yet."""
    return _held_here(host, ExportStatus.FINISHED, copy_sha256="")


@gpu_host.request
def removable_exports(host: OwnHost) -> list[HeldExport]:
    """Exports on `host` whose files are to be removed."""
    return _held_here(host, ExportStatus.REMOVING)


def _held_here(host: str, status: ExportStatus, **columns: str) -> list[HeldExport]:
    rows = CheckpointExport.objects.filter(host=host, status=status, **columns).select_related("checkpoint")
    return [_held(row) for row in rows if took_part(row.checkpoint_id)]


def _held(row: CheckpointExport) -> HeldExport:
    return HeldExport(row.pk, row.checkpoint.path, row.path, row.dtype, row.copy_prefix)
