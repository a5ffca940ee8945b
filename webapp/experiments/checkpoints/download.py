"""The folder of a finished export as one .tar, made while it is sent."""

from __future__ import annotations

from pathlib import Path

from django.contrib.auth.models import User
from django.http import StreamingHttpResponse

from webapp.experiments.checkpoints.exports import record_download
from webapp.experiments.checkpoints.tar_stream import stream_tar, tar_bytes
from webapp.experiments.models import CheckpointExport, ExportStatus


class CannotDownload(Exception):
    """Raised when there is nothing to send; the message says why, and where the files lie."""


def download(*, export: CheckpointExport, user: User) -> StreamingHttpResponse:
    """Send it, and note that in the audit log. Raises CannotDownload."""
    if export.status != ExportStatus.FINISHED:
        raise CannotDownload(f"The export is {export.status}.")
    folder = Path(export.path)
    if not folder.is_dir():
        raise CannotDownload(
            f"The export lies on {export.host} in {export.path}, which this web server cannot see. "
            "Copy it from there."
        )
    record_download(export=export, user=user)
    response = StreamingHttpResponse(stream_tar(folder), content_type="application/x-tar")
    response["Content-Length"] = str(tar_bytes(folder))
    response["Content-Disposition"] = f'attachment; filename="{folder.name}.tar"'
    return response
