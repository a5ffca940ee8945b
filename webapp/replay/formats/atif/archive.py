"""Documents with their screenshots as a .zip: written while it is sent, and read without unpacking it.

entry-12/trajectory.json    entry-12/images/SHA.png
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile

from django.core.files import File

from webapp.lib.media.file_streams import zip_pieces
from webapp.lib.request_values import BadValue, json_object
from webapp.replay.formats.atif.read import is_document, line_of_document
from webapp.replay.formats.atif.write import IMAGES, document_of
from webapp.replay.formats.contract import BATCH_LINES, Batch, Format, Row, UnreadableFile
from webapp.replay.formats.conversation import ReadProblem
from webapp.replay.formats.slime_export import record_of
from webapp.replay.models import ReplayEntry, ReplayImport
from webapp.trajectories.frame_files import read_frame

MAX_FILE_BYTES = 64 * 2**20
"""Of one document or image, unpacked."""
MAX_DOCUMENT_BYTES = 512 * 2**20
"""Of one document with its images: a small archive may unpack to anything."""
MAX_MEMBERS = 200_000
UNREADABLE = (
    BadZipFile, NotImplementedError, RuntimeError, OverflowError, ValueError, EOFError, zlib.error,
    struct.error,
)  # fmt: skip
"""What zipfile raises for archives that were damaged, or made to break readers."""
METHODS = (ZIP_STORED, ZIP_DEFLATED)
"""Others may ask for gigabytes before they unpack a byte."""


def archive_pieces(entries: Iterable[ReplayEntry]) -> Iterator[bytes]:
    """The .zip of these entries. Needs what `export_line` needs. Raises CannotExport."""
    return zip_pieces(file for entry in entries for file in _files_of(entry))


def _files_of(entry: ReplayEntry) -> Iterator[tuple[str, str | bytes]]:
    record, shas = record_of(entry)
    folder = f"entry-{entry.pk}"
    yield f"{folder}/trajectory.json", json.dumps(document_of(record, shas), ensure_ascii=False)
    for sha in dict.fromkeys(shas):
        yield f"{folder}/{IMAGES}/{sha}.png", read_frame(sha, "png")


@dataclass(frozen=True, slots=True)
class ArchivedDocument:
    archive: ZipFile
    name: str

    def line(self) -> dict[str, Any]:
        """It as a line of the replay format. Raises ReadProblem, BadValue."""
        left = MAX_DOCUMENT_BYTES

        def read_file(path: str) -> bytes:
            nonlocal left
            body = _read(self.archive, str(PurePosixPath(self.name).parent / path))
            left -= len(body)
            if left < 0:
                raise ReadProblem(self.name, f"larger than {MAX_DOCUMENT_BYTES // 2**20} MiB with its images")
            return body

        data = json_object(_read(self.archive, self.name), self.name)
        if not is_document(data):
            raise ReadProblem(f"{self.name}: schema_version", "not ATIF-v1.*")
        try:
            return line_of_document(data, read_file)
        except ReadProblem as problem:
            raise ReadProblem("", f"{self.name}: {problem}") from problem


def documents(archive: ZipFile) -> list[ArchivedDocument]:
    """All .json files, in the order of their names. Raises BadValue for too many members."""
    if len(archive.infolist()) > MAX_MEMBERS:
        raise BadValue("file", f"more than {MAX_MEMBERS} files in it")
    names = sorted(name for name in archive.namelist() if name.endswith(".json"))
    return [ArchivedDocument(archive, name) for name in names]


def _read(archive: ZipFile, name: str) -> bytes:
    """A member, which has to lie in the archive and be of a sane size."""
    try:
        if archive.getinfo(name).compress_type not in METHODS:
            raise ReadProblem(name, "packed by another method than deflate")
        with archive.open(name) as stream:
            body = stream.read(MAX_FILE_BYTES + 1)
    except KeyError as error:
        raise ReadProblem(name, "no such file in the archive; images are read from there alone") from error
    except ReadProblem:
        raise
    except (*UNREADABLE, OSError) as error:
        raise ReadProblem(name, f"cannot be unpacked ({type(error).__name__})") from error
    if len(body) > MAX_FILE_BYTES:
        raise ReadProblem(name, f"larger than {MAX_FILE_BYTES // 2**20} MiB")
    return body


def archive_batches(file: File[Any], job: ReplayImport) -> Iterator[Batch]:
    """Documents are read one by one when their turn comes."""
    try:
        with ZipFile(file) as archive:
            found = documents(archive)
            for first in range(job.done_lines, len(found), BATCH_LINES):
                rows = found[first : first + BATCH_LINES]
                numbered: dict[int, Row] = {
                    number: document.line for number, document in enumerate(rows, start=first + 1)
                }
                done = first + len(rows)
                yield Batch(numbered, done, job.size_bytes * done // len(found))
    except UNREADABLE as error:
        raise UnreadableFile(f"It is no .zip that can be read ({str(error)[:200]}).") from error


ATIF = Format(
    title="ATIF",
    about="ATIF is harbor's trajectory format, a document and a folder of images for each entry",
    content_type="application/zip",
    ending="-atif.zip",
    pieces=lambda entries, images: archive_pieces(entries),
    first_bytes=b"PK\x03\x04",
    batches=archive_batches,
    uploads="ATIF as .zip",
    endings=(".zip",),
)
