"""The rows of a Parquet table, group by group."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from django.core.files import File

from webapp.lib.request_values import check_plain, json_object
from webapp.replay.formats.contract import BATCH_LINES, Batch, Format, Row, UnreadableFile
from webapp.replay.formats.parquet.export import table_pieces
from webapp.replay.models import ReplayImport
from webapp.trajectories.dataset.parquet_stream import CONTENT_TYPE

MAX_GROUP_BYTES = 1 << 30


def table_batches(file: File[Any], job: ReplayImport) -> Iterator[Batch]:
    """Whole row groups that were read before are left out unread."""
    try:
        table = pq.ParquetFile(file)
        num_rows, number = table.metadata.num_rows, 0
        for group in range(table.num_row_groups):
            num_of_group = table.metadata.row_group(group).num_rows
            if table.metadata.row_group(group).total_byte_size > MAX_GROUP_BYTES:
                size = f"more than {MAX_GROUP_BYTES >> 20} MiB"
                raise UnreadableFile(f"Its row group {group} unpacks to {size}; write smaller row groups.")
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
                    place: partial(line_of_row, row)
                    for place, row in enumerate(rows, start=first + left_out + 1)
                }
                yield Batch(numbered, number, job.size_bytes * number // max(1, num_rows))
    except (pa.ArrowException, OSError, MemoryError) as error:
        raise UnreadableFile(f"It is no Parquet table that can be read ({str(error)[:200]}).") from error


def line_of_row(row: dict[str, Any]) -> dict[str, Any]:
    """A table's row as the object of a line. Raises BadValue."""
    data = {name: _plain(value) for name, value in row.items() if value is not None}
    check_plain(data, "row")
    others = data.pop("others", None)  # of our own tables: what has no column
    return {**data, **json_object(others, "others")} if isinstance(others, str) else data


def _plain(value: Any) -> Any:
    """A table's value as JSON has it: bytes as base64, what JSON lacks as text."""
    if isinstance(value, dict):
        return {str(name): _plain(item) for name, item in value.items() if item is not None}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, bytes):
        return b64encode(value).decode()
    return value if value is None or isinstance(value, str | bool | int | float) else str(value)


PARQUET = Format(
    title="Parquet",
    about="Parquet opens with datasets, images included",
    content_type=CONTENT_TYPE,
    ending=".parquet",
    pieces=lambda entries, images: table_pieces(entries),
    first_bytes=b"PAR1",
    batches=table_batches,
    uploads=".parquet",
    endings=(".parquet",),
)
