"""A folder's copy: fetched whole and equal, or not at all.

PREFIX/files/SHA256          the contents of its files
PREFIX/manifests/SHA256      JSON: which file has which content

Nothing there is ever changed: a folder that was copied before adds what is new, and a manifest. Who knows
a manifest's sum gets exactly what was copied under it.
"""

import hashlib
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from webapp.lib.copies.place import CopiesPlace

MARK = "COPIED"
"""File of a folder that was copied, or fetched: the sum of its manifest."""
MAX_MANIFEST_BYTES = 16 << 20
MAX_FILES = 20_000


class CopyDamaged(Exception):
    """Raised when what lies in the place of copies is not what was put there."""


class CopiedFile(BaseModel):
    """One file of a folder."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    sha256: str = Field(pattern="^[0-9a-f]{64}$")
    """Also its name in the place: nothing that leads elsewhere, such as to a device that never ends."""
    num_bytes: int = Field(ge=0)


class Manifest(BaseModel):
    """All files of a folder, by their paths in it."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    files: dict[str, CopiedFile] = Field(max_length=MAX_FILES)

    @property
    def num_bytes(self) -> int:
        return sum(file.num_bytes for file in self.files.values())


def upload_folder(place: CopiesPlace, prefix: str, folder: Path) -> str:
    """Copy a folder there; the sum of its manifest. Raises OSError, also when the folder goes meanwhile."""
    there = set(place.names(f"{prefix}/files"))
    files = {}
    for path in sorted(folder.rglob("*")):
        if not path.is_file() or path == folder / MARK:
            continue
        file = CopiedFile(sha256=sum_of_file(path), num_bytes=path.stat().st_size)
        files[path.relative_to(folder).as_posix()] = file
        if (name := _content(prefix, file)) not in there:
            place.put(name, path)
    body = Manifest(files=files).model_dump_json().encode()
    manifest_sum = hashlib.sha256(body).hexdigest()
    draft = folder / f"{MARK}.{secrets.token_hex(4)}.tmp"
    try:
        draft.write_bytes(body)
        place.put(f"{prefix}/manifests/{manifest_sum}", draft)
        draft.write_text(manifest_sum)
        draft.replace(folder / MARK)
    finally:
        draft.unlink(missing_ok=True)
    return manifest_sum


def read_manifest(place: CopiesPlace, prefix: str, manifest_sum: str) -> Manifest:
    """What was copied under that sum. Raises FileNotFoundError, CopyDamaged and OSError."""
    name = f"{prefix}/manifests/{manifest_sum}"
    with place.open(name) as file:
        body = file.read(MAX_MANIFEST_BYTES)
    if hashlib.sha256(body).hexdigest() != manifest_sum:
        raise CopyDamaged(f"{name} does not have the sum that it is named by")
    try:
        return Manifest.model_validate_json(body)
    except ValidationError as error:
        raise CopyDamaged(f"{name} is no list of files: {error}") from error


def fetch_folder(
    place: CopiesPlace,
    prefix: str,
    manifest: Manifest,
    folder: Path,
    *,
    mark: str = "",
    keep_going: Callable[[], None] = lambda: None,
) -> None:
    """Make `folder` with these files; it appears when all of them are there and equal.

    `mark`: the manifest's sum, for `copied_sum`. `keep_going` is called between files and may raise.
    Raises FileNotFoundError, CopyDamaged and OSError.
    """
    sizes = place.sizes(f"{prefix}/files")
    for name, file in manifest.files.items():
        if (found := sizes.get(_content(prefix, file))) not in (None, file.num_bytes):
            raise CopyDamaged(f"{prefix}: {name} has {found} bytes, {file.num_bytes} were copied")
    draft = folder.with_name(f"{folder.name}.{secrets.token_hex(4)}.part")
    try:
        draft.mkdir(parents=True)
        for name, file in manifest.files.items():
            keep_going()
            target = draft / safe_path(name)
            target.parent.mkdir(parents=True, exist_ok=True)
            place.get(_content(prefix, file), target)
            if sum_of_file(target) != file.sha256:
                raise CopyDamaged(f"{prefix}: {name} is not what was copied; its sum differs")
        if mark:
            (draft / MARK).write_text(mark)
        draft.rename(folder)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


@contextmanager
def opened(place: CopiesPlace, prefix: str, file: CopiedFile) -> Iterator[IO[bytes]]:
    """Read one file; its reader compares the sum."""
    with place.open(_content(prefix, file)) as stream:
        yield stream


def copied_sum(folder: Path) -> str:
    """The manifest's sum that `folder` was copied or fetched under last; "" when it never was."""
    try:
        return (folder / MARK).read_text()
    except FileNotFoundError:
        return ""


def sum_of_file(path: Path) -> str:
    """sha256, hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def safe_path(name: str) -> PurePosixPath:
    """A manifest's path. Raises CopyDamaged for one that leads out of its folder."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not path.parts or "\0" in name:
        raise CopyDamaged(f"{name!r} is no path within a folder")
    return path


def _content(prefix: str, file: CopiedFile) -> str:
    return f"{prefix}/files/{file.sha256}"
