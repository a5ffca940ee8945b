"""The folder of a finished export as one .tar, made while it is sent."""

from pathlib import Path

from django.contrib.auth.models import User
from django.http import StreamingHttpResponse

from webapp.checkpoints.services.exports import record_export_download
from webapp.checkpoints.tar_stream import (
    TarMember,
    members_of,
    members_of_copy,
    stream_tar,
    tar_bytes,
)
from webapp.experiments.models import CheckpointExport, ExportStatus
from webapp.lib.copies.folder_copy import CopyDamaged, read_manifest
from webapp.lib.copies.place import CopiesPlace, copies_place


class CannotDownload(Exception):
    """Raised when there is nothing to send; the message says why, and where the files lie."""


def download(*, export: CheckpointExport, user: User) -> StreamingHttpResponse:
    """Send it, and note that in the audit log. Raises CannotDownload."""
    if export.status != ExportStatus.FINISHED:
        raise CannotDownload(f"The export is {export.status}.")
    folder, place = Path(export.path), copies_place()
    if folder.is_dir():
        members = members_of(folder)
    elif place is not None and export.copy_sha256:
        members = _members_of_copy(place, export)
    else:
        raise CannotDownload(
            f"The export lies on {export.host} in {export.path}, which this web server cannot see. "
            "Copy it from there."
        )
    record_export_download(export=export, user=user)
    response = StreamingHttpResponse(stream_tar(folder.name, members), content_type="application/x-tar")
    response["Content-Length"] = str(tar_bytes(members))
    response["Content-Disposition"] = f'attachment; filename="{folder.name}.tar"'
    return response


def _members_of_copy(place: CopiesPlace, export: CheckpointExport) -> list[TarMember]:
    try:
        manifest = read_manifest(place, export.copy_prefix, export.copy_sha256)
    except (CopyDamaged, OSError) as error:
        raise CannotDownload(f"The copy of the export cannot be read: {error}") from error
    return members_of_copy(place, export.copy_prefix, manifest)
