"""Exports that gpu workers have to write, copy or remove."""

from datetime import timedelta

from django.utils import timezone

from webapp.experiments.models import CheckpointExport, ExportStatus

OTHERS_FIRST = timedelta(seconds=60)


def waiting_exports() -> list[CheckpointExport]:
    """The oldest ones."""
    rows = CheckpointExport.objects.filter(status=ExportStatus.QUEUED).select_related("checkpoint")
    return list(rows.order_by("id")[:8])


def is_for_anyone(export: CheckpointExport) -> bool:
    """False in its first minute, while workers that cannot see the checkpoint's folder leave it to others."""
    return export.created_at <= timezone.now() - OTHERS_FIRST


def uncopied_exports(*, host: str) -> list[CheckpointExport]:
    """Finished ones of `host` that other hosts cannot have yet."""
    return list(CheckpointExport.objects.filter(status=ExportStatus.FINISHED, host=host, copy_sha256=""))


def removable_exports(*, host: str) -> list[CheckpointExport]:
    """Exports on `host` whose files are to be removed."""
    return list(CheckpointExport.objects.filter(status=ExportStatus.REMOVING, host=host))
