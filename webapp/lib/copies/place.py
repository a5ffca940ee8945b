"""The place of copies, as `DESKHAND_COPIES` names it: a folder that all hosts see, or a bucket."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Protocol, cast

from django.conf import settings
from django.core.files.storage import FileSystemStorage, storages

from webapp.lib.media.bucket_address import COPIES

if TYPE_CHECKING:
    from webapp.lib.media.bucket_storage import BucketStorage


class CopiesPlace(Protocol):
    """Files by names with slashes; one appears under its name when it is complete.

    Raises StorageAway or another OSError when the place cannot be used now, FileNotFoundError for a file
    that is not there.
    """

    def put(self, name: str, path: Path) -> None:
        """Copy a file there."""

    def get(self, name: str, path: Path) -> None:
        """Copy a file from there."""

    def open(self, name: str) -> AbstractContextManager[IO[bytes]]:
        """Read a file there."""

    def names(self, prefix: str) -> Iterator[str]:
        """Of all files whose names begin with `prefix/`."""

    def sizes(self, prefix: str) -> dict[str, int]:
        """Bytes of each file whose name begins with `prefix/`."""

    def remove(self, prefix: str) -> None:
        """Delete the files whose names begin with `prefix/`."""


def copies_place() -> CopiesPlace | None:
    """Where copies of this installation lie; None when none are made."""
    if COPIES not in settings.STORAGES:
        return None
    storage = storages[COPIES]
    if isinstance(storage, FileSystemStorage):
        return FolderPlace(Path(storage.location))
    return BucketPlace(cast("BucketStorage", storage))


class FolderPlace:
    """See CopiesPlace; a folder that all hosts see, perhaps under different paths."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def put(self, name: str, path: Path) -> None:
        target = self._root / name
        target.parent.mkdir(parents=True, exist_ok=True)
        draft = target.with_name(f".{target.name}.{os.getpid()}.{secrets.token_hex(4)}")
        try:
            shutil.copyfile(path, draft)
            draft.replace(target)
        finally:
            draft.unlink(missing_ok=True)

    def get(self, name: str, path: Path) -> None:
        shutil.copyfile(self._root / name, path)

    def open(self, name: str) -> AbstractContextManager[IO[bytes]]:
        return (self._root / name).open("rb")

    def names(self, prefix: str) -> Iterator[str]:
        for path in sorted((self._root / prefix).rglob("*")):
            if path.is_file() and not path.name.startswith("."):
                yield path.relative_to(self._root).as_posix()

    def sizes(self, prefix: str) -> dict[str, int]:
        return {name: (self._root / name).stat().st_size for name in self.names(prefix)}

    def remove(self, prefix: str) -> None:
        shutil.rmtree(self._root / prefix, ignore_errors=True)


class BucketPlace:
    """See CopiesPlace; a bucket of an S3 server, large files in parts."""

    def __init__(self, bucket: BucketStorage) -> None:
        self._bucket = bucket

    def put(self, name: str, path: Path) -> None:
        self._bucket.upload(name, path)

    def get(self, name: str, path: Path) -> None:
        self._bucket.download(name, path)

    def open(self, name: str) -> AbstractContextManager[IO[bytes]]:
        return self._bucket.opened(name)

    def names(self, prefix: str) -> Iterator[str]:
        return (one.name for one in self._bucket.under(f"{prefix}/"))

    def sizes(self, prefix: str) -> dict[str, int]:
        return {one.name: one.num_bytes for one in self._bucket.under(f"{prefix}/")}

    def remove(self, prefix: str) -> None:
        self._bucket.remove(self.names(prefix))
