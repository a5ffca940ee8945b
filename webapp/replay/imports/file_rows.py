"""The rows of an uploaded file, batch by batch: JSON lines, a Parquet table, or ATIF documents in a .zip.

Its first bytes tell which.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any
from zipfile import ZipFile

import pyarrow as pa
import pyarrow.parquet as pq
from django.core.files import File
from django.core.files.storage import default_storage

from training.tasks.json_files import LINE_END
from webapp.lib.request_values import check_plain, json_object
from webapp.replay.atif.archive import UNREADABLE, ArchivedDocument, documents
from webapp.replay.models import ReplayImport

BATCH_LINES = 32
READ_BYTES = 2**20
PARQUET = b"PAR1"
ARCHIVE = b"PK\x03\x04"
Row = bytes | dict[str, Any] | ArchivedDocument


class UnreadableFile(Exception):
    """Raised when the file as a whole cannot be read; the message says why."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Some rows, with where the file goes on behind them."""

    rows: dict[int, Row]
    """Number, from 1 -> line, table row or document; empty lines left out."""
    done_lines: int
    done_bytes: int


def batches(job: ReplayImport) -> Iterator[Batch]:
    """The rest of the file. Raises FileNotFoundError, UnreadableFile."""
    with default_storage.open(job.path, "rb") as file:
        read = {PARQUET: _table_batches, ARCHIVE: _archive_batches}.get(file.read(4), _line_batches)
        yield from read(file, job)


def is_of_lines(job: ReplayImport) -> bool:
    """False of what unpacks to any size. A file that is gone is found out by reading it."""
    if not default_storage.exists(job.path):
        return True
    with default_storage.open(job.path, "rb") as file:
        return file.read(4) not in (PARQUET, ARCHIVE)


def data_of(row: Row) -> dict[str, Any]:
    """The object of a row. Raises BadValue, ReadProblem."""
    if isinstance(row, bytes):
        return json_object(row, "")
    if isinstance(row, ArchivedDocument):
        return row.line()
    data = {name: _plain(value) for name, value in row.items() if value is not None}
    check_plain(data, "row")
    others = data.pop("others", None)  # of our own tables: what has no column
    return {**data, **json_object(others, "others")} if isinstance(others, str) else data


def _line_batches(file: File[Any], job: ReplayImport) -> Iterator[Batch]:
    file.seek(job.done_bytes)
    number, done = job.done_lines, job.done_bytes
    found = _lines(file)
    while lines := list(islice(found, BATCH_LINES)):
        numbered: dict[int, Row] = {
            number + place: line for place, line in enumerate(lines, start=1) if line.strip()
        }
        number += len(lines)
        done += sum(map(len, lines))
        yield Batch(numbered, number, done)


def _lines(file: File[Any]) -> Iterator[bytes]:
    """With their ends: LF, CR LF, or CR alone. U+2028 ends none."""
    kept, searched = b"", 0
    while more := file.read(READ_BYTES):
        kept, start = kept + more, 0
        for end in LINE_END.finditer(kept, searched):
            if end.end() == len(kept) and end[0] == b"\r":
                break  # the LF of a CR LF may follow
            yield kept[start : end.end()]
            start = end.end()
        kept = kept[start:]
        searched = max(0, len(kept) - 1)
    yield from kept.splitlines(keepends=True)


def _table_batches(file: File[Any], job: ReplayImport) -> Iterator[Batch]:
    """Whole row groups that were read before are left out unread."""
    try:
        table = pq.ParquetFile(file)
        num_rows, number = table.metadata.num_rows, 0
        for group in range(table.num_row_groups):
            num_of_group = table.metadata.row_group(group).num_rows
            if number + num_of_group <= job.done_lines:
                number += num_of_group
                continue
            for part in table.iter_batches(batch_size=BATCH_LINES, row_groups=[group]):
                first, number = number, number + part.num_rows
                if number <= job.done_lines:
                    continue
                left_out = max(0, job.done_lines - first)
                rows = part.slice(left_out).to_pylist()
                numbered: dict[int, Row] = {
                    first + left_out + place: row for place, row in enumerate(rows, start=1)
                }
                yield Batch(numbered, number, job.size_bytes * number // max(1, num_rows))
    except (pa.ArrowException, OSError, MemoryError) as error:
        raise UnreadableFile(f"It is no Parquet table that can be read ({str(error)[:200]}).") from error


def _archive_batches(file: File[Any], job: ReplayImport) -> Iterator[Batch]:
    """Documents are read one by one when their turn comes."""
    try:
        with ZipFile(file) as archive:
            found = documents(archive)
            for first in range(job.done_lines, len(found), BATCH_LINES):
                rows = found[first : first + BATCH_LINES]
                numbered: dict[int, Row] = dict(enumerate(rows, start=first + 1))
                done = first + len(rows)
                yield Batch(numbered, done, job.size_bytes * done // len(found))
    except UNREADABLE as error:
        raise UnreadableFile(f"It is no .zip that can be read ({str(error)[:200]}).") from error


def _plain(value: Any) -> Any:
    """A table's value as JSON has it: bytes as base64, what JSON lacks as text."""
    if isinstance(value, dict):
        return {str(name): _plain(item) for name, item in value.items() if item is not None}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, bytes):
        return b64encode(value).decode()
    return value if value is None or isinstance(value, str | bool | int | float) else str(value)
