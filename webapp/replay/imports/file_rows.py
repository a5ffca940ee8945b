"""The rows of an uploaded file, batch by batch; its first bytes tell of which form it is."""

from collections.abc import Iterator

from django.core.files.storage import default_storage

from webapp.replay.formats.contract import Batch
from webapp.replay.formats.registry import format_of
from webapp.replay.models import ReplayImport


def batches(job: ReplayImport) -> Iterator[Batch]:
    """The rest of the file. Raises FileNotFoundError, UnreadableFile."""
    with default_storage.open(job.path, "rb") as file:
        yield from format_of(file.read(4)).batches(file, job)


def unpacks(job: ReplayImport) -> bool:
    """Whether it may unpack to any size. A file that is gone is found out by reading it."""
    if not default_storage.exists(job.path):
        return False
    with default_storage.open(job.path, "rb") as file:
        return format_of(file.read(4)).unpacks
