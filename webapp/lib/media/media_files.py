"""All of the installation's files at once, as a backup takes and gives them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

from django.core.files.storage import FileSystemStorage, default_storage

if TYPE_CHECKING:
    from webapp.lib.media.bucket_storage import BucketStorage

PASSING = "passing/"
"""Objects below it are notes between processes, no files."""


@dataclass(frozen=True, slots=True)
class MediaFile:
    """One of them, by its storage name."""

    name: str

    @contextmanager
    def opened(self) -> Iterator[IO[bytes]]:
        """Its bytes, from the first one. Raises FileNotFoundError."""
        if not is_bucket():
            with Path(default_storage.path(self.name)).open("rb") as file:
                yield file
        else:
            yield BytesIO(bucket().read(self.name))


def is_bucket() -> bool:
    """Whether files lie in a bucket, not in a folder of this host."""
    return not isinstance(default_storage, FileSystemStorage)


def bucket() -> BucketStorage:
    """The installation's bucket, where it has one."""
    return cast("BucketStorage", default_storage)


def media_files() -> Iterator[MediaFile]:
    """Those that are complete: drafts in a folder begin with a dot."""
    if is_bucket():
        yield from (MediaFile(one.name) for one in bucket().under() if not one.name.startswith(PASSING))
        return
    root = default_storage.path("")
    for folder, _, names in os.walk(root):
        for name in names:
            if not name.startswith("."):
                yield MediaFile(Path(folder, name).relative_to(root).as_posix())


def write_media(name: str, body: IO[bytes]) -> None:
    """Put a file back under the name that it had."""
    if is_bucket():
        bucket().put(name, body.read())
        return
    path = Path(default_storage.path(name))
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        shutil.copyfileobj(body, file)
