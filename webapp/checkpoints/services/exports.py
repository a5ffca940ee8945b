"""Exports of checkpoints as plain transformers folders: what people ask for, what a gpu worker reports.

    queued -> running -> finished -> removing -> removed        (failed from the first two)

A gpu worker writes them in a process of its own, also while it trains; the files lie on its host.
"""

from contextlib import suppress
from pathlib import Path

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from webapp.accounts.models import AuditAction
from webapp.accounts.services.audit_log import log_action
from webapp.experiments.models import CheckpointExport, CheckpointRecord, ExportStatus
from webapp.experiments.queries.checkpoints import CheckpointRefused, require_kept
from webapp.lib.long_work import SILENT, BadEnd, TakenAway
from webapp.lib.remote_calls import OwnExport, gpu_host

DTYPES = ("bfloat16", "float16", "float32")
OPEN = [ExportStatus.QUEUED, ExportStatus.RUNNING, ExportStatus.FINISHED]

REMOVED_BY_PEOPLE = {
    ExportStatus.QUEUED: ExportStatus.REMOVED,
    ExportStatus.FAILED: ExportStatus.REMOVED,
    ExportStatus.FINISHED: ExportStatus.REMOVING,
}


@transaction.atomic
def request_export(
    *, checkpoint: CheckpointRecord, user: User | None, dtype: str = "bfloat16"
) -> CheckpointExport:
    """Queue an export; the one that exists already is answered instead. Raises CheckpointRefused."""
    if dtype not in DTYPES:
        raise CheckpointRefused(f"must be one of {', '.join(DTYPES)}", "dtype")
    known = checkpoint.exports.filter(dtype=dtype, status__in=OPEN).first()
    if known is not None:
        return known
    require_kept(checkpoint)
    export = CheckpointExport.objects.create(checkpoint=checkpoint, owner=user, dtype=dtype)
    _record(AuditAction.EXPORTED, export, user)
    export.publish()
    return export


@transaction.atomic
def remove_export(*, export: CheckpointExport, user: User | None = None) -> bool:
    """Have its files deleted (a failed or waiting one only leaves the page); False when it is written now."""
    to = REMOVED_BY_PEOPLE.get(ExportStatus(export.status))
    removed = to is not None and export.move(to)
    if removed:
        _record(AuditAction.EXPORT_REMOVED, export, user)
    return removed


def record_export_download(*, export: CheckpointExport, user: User) -> None:
    """Note in the audit log that a person takes the files away."""
    _record(AuditAction.EXPORTED, export, user, downloaded=True)


def _record(action: AuditAction, export: CheckpointExport, user: User | None, **detail: object) -> None:
    checkpoint = export.checkpoint
    detail = {"step": checkpoint.step, "dtype": export.dtype, **detail}
    experiment = checkpoint.experiment
    log_action(
        action, person=user, team=experiment.team_id, kind="experiment", object_id=experiment.pk, **detail
    )


def export_row(export_id: int) -> CheckpointExport:
    """With its checkpoint. Raises CheckpointExport.DoesNotExist."""
    return CheckpointExport.objects.select_related("checkpoint").get(pk=export_id)


@gpu_host.request
def fail_export(export_id: OwnExport, message: str) -> None:
    """It could not be written; `message` says what to do."""
    export_row(export_id).fail(message)


def claim_export(*, export: CheckpointExport, worker_name: str, host: str, folder: Path) -> bool:
    """It is to be written to a new folder below `folder`; False when another worker has it."""
    checkpoint = export.checkpoint
    name = f"experiment-{checkpoint.experiment_id}-step-{checkpoint.step}-{export.dtype}-{export.pk}"
    place = {"worker_name": worker_name, "host": host, "path": str(folder / name)}
    if CheckpointExport.take(export.pk, done_bytes=0, **place) is None:
        return False
    export.refresh_from_db()
    return True


@gpu_host.request
def report_export(export_id: OwnExport, done_bytes: int, total_bytes: int) -> None:
    """Heartbeat of a running export, with its progress."""
    export = export_row(export_id)
    with suppress(TakenAway):
        export.beat(done_bytes=max(done_bytes, export.done_bytes), total_bytes=total_bytes)


@gpu_host.request
def finish_export(export_id: OwnExport, size_bytes: int) -> None:
    """Its folder is complete."""
    export_row(export_id).end(ExportStatus.FINISHED, done_bytes=size_bytes, total_bytes=size_bytes)


@gpu_host.request
def record_export_copy(export_id: OwnExport, copy_sha256: str) -> None:
    CheckpointExport.objects.filter(pk=export_id).update(copy_sha256=copy_sha256)


@gpu_host.request
def confirm_removal(export_id: OwnExport) -> None:
    """Its files are gone."""
    export_row(export_id).move(ExportStatus.REMOVED, ended_at=timezone.now())


def lose_stale_exports() -> int:
    """Queue the exports of gpu workers that fell silent again, or end them; returns how many."""
    stale = CheckpointExport.claimable().filter(status=ExportStatus.RUNNING)
    for export in stale:
        export.lose(BadEnd(SILENT, may_pass=True))
    return len(stale)
