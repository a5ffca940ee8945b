"""Exports of checkpoints as plain transformers folders: what people ask for, what a gpu worker reports.

    queued -> running -> finished -> removing -> removed        (failed from the first two)

A gpu worker writes them in a process of its own, also while it trains; the files lie on its host.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from webapp.accounts.models import AuditAction
from webapp.accounts.services.audit_log import log_action
from webapp.experiments.checkpoints.usable_checkpoints import CheckpointRefused, require_kept
from webapp.experiments.lifecycle.status_changes import stream_of
from webapp.experiments.models import EXPORT_TRANSITIONS, CheckpointExport, CheckpointRecord, ExportStatus
from webapp.lib.silence import silent_for
from webapp.lib.transitions import sources_of
from webapp.live.event_publishing import publish

DTYPES = ("bfloat16", "float16", "float32")
HEARTBEAT_TIMEOUT = timedelta(seconds=20)
OTHERS_FIRST = timedelta(seconds=60)
OPEN = [ExportStatus.QUEUED, ExportStatus.RUNNING, ExportStatus.FINISHED]


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
    _publish(export)
    return export


@transaction.atomic
def request_removal(*, export: CheckpointExport, user: User | None = None) -> bool:
    """Have its files deleted (a failed or waiting one only leaves the page); False when it is written now."""
    unwritten = {ExportStatus.QUEUED, ExportStatus.FAILED}
    removed = _change(export, ExportStatus.REMOVED, sources=unwritten) or _change(
        export, ExportStatus.REMOVING
    )
    if removed:
        _record(AuditAction.EXPORT_REMOVED, export, user)
    return removed


def record_download(*, export: CheckpointExport, user: User) -> None:
    """Note in the audit log that a person takes the files away."""
    _record(AuditAction.EXPORTED, export, user, downloaded=True)


def _record(action: AuditAction, export: CheckpointExport, user: User | None, **detail: object) -> None:
    checkpoint = export.checkpoint
    detail = {"step": checkpoint.step, "dtype": export.dtype, **detail}
    experiment = checkpoint.experiment
    log_action(
        action, person=user, team=experiment.team_id, kind="experiment", object_id=experiment.pk, **detail
    )


def waiting_exports() -> list[CheckpointExport]:
    """The oldest ones."""
    rows = CheckpointExport.objects.filter(status=ExportStatus.QUEUED).select_related("checkpoint")
    return list(rows.order_by("id")[:8])


def is_for_anyone(export: CheckpointExport) -> bool:
    """False in its first minute, while workers that cannot see the checkpoint's folder leave it to others."""
    return export.created_at <= timezone.now() - OTHERS_FIRST


def claim_export(*, export: CheckpointExport, worker_name: str, host: str, folder: Path) -> bool:
    """It is to be written to a new folder below `folder`; False when another worker has it."""
    checkpoint = export.checkpoint
    name = f"experiment-{checkpoint.experiment_id}-step-{checkpoint.step}-{export.dtype}-{export.pk}"
    return _change(
        export,
        ExportStatus.RUNNING,
        heartbeat_at=timezone.now(),
        worker_name=worker_name,
        host=host,
        path=str(folder / name),
        done_bytes=0,
    )


def report_export(*, export: CheckpointExport, done_bytes: int, total_bytes: int) -> None:
    """Heartbeat of a running export, with its progress."""
    with transaction.atomic():
        changed = CheckpointExport.objects.filter(pk=export.pk, done_bytes__lt=done_bytes).update(
            done_bytes=done_bytes, total_bytes=total_bytes
        )
        CheckpointExport.objects.filter(pk=export.pk).update(heartbeat_at=timezone.now())
        if changed:
            _publish(export)


def finish_export(*, export: CheckpointExport, size_bytes: int) -> None:
    """Its folder is complete."""
    _change(
        export,
        ExportStatus.FINISHED,
        ended_at=timezone.now(),
        message="",
        done_bytes=size_bytes,
        total_bytes=size_bytes,
    )


def fail_export(*, export: CheckpointExport, message: str) -> None:
    """It could not be written; `message` says what to do."""
    _change(export, ExportStatus.FAILED, ended_at=timezone.now(), message=message[:2000])


def uncopied_exports(*, host: str) -> list[CheckpointExport]:
    """Finished ones of `host` that other hosts cannot have yet."""
    return list(CheckpointExport.objects.filter(status=ExportStatus.FINISHED, host=host, copy_sha256=""))


def record_export_copy(*, export: CheckpointExport, copy_sha256: str) -> None:
    """Its copy is complete."""
    CheckpointExport.objects.filter(pk=export.pk).update(copy_sha256=copy_sha256)


def removable_exports(*, host: str) -> list[CheckpointExport]:
    """Exports on `host` whose files are to be removed."""
    return list(CheckpointExport.objects.filter(status=ExportStatus.REMOVING, host=host))


def confirm_removal(*, export: CheckpointExport) -> None:
    """Its files are gone."""
    _change(export, ExportStatus.REMOVED, ended_at=timezone.now())


def lose_stale_exports() -> int:
    """Queue the exports of gpu workers that fell silent again; returns how many."""
    stale = CheckpointExport.objects.filter(silent_for(HEARTBEAT_TIMEOUT), status=ExportStatus.RUNNING)
    return sum(_change(export, ExportStatus.QUEUED, message="its gpu worker is gone") for export in stale)


def _change(
    export: CheckpointExport, to: ExportStatus, *, sources: set[ExportStatus] | None = None, **values: Any
) -> bool:
    """Move it along EXPORT_TRANSITIONS; False when its status has changed meanwhile."""
    allowed = sources_of(to, EXPORT_TRANSITIONS)
    if sources is not None:
        allowed &= sources
    with transaction.atomic():
        rows = CheckpointExport.objects.filter(pk=export.pk, status__in=allowed)
        moved = rows.update(status=to, **values)
        if moved:
            export.refresh_from_db()
            _publish(export)
    return bool(moved)


def _publish(export: CheckpointExport) -> None:
    payload = {"export": export.pk, "checkpoint": export.checkpoint_id, "status": export.status}
    publish(stream_of(export.checkpoint.experiment_id), "checkpoint.exported", payload)
