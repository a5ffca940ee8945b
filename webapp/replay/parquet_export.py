"""Replay entries as a Parquet table, written as it is sent; `datasets` opens it with its images.

The columns are the keys of a JSON line, with `images` as {bytes, path} and `metadata` as JSON text. Rows come
in groups of GROUP, so that a reader may stream them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from webapp.replay.models import ReplayEntry
from webapp.replay.slime_export import record_of
from webapp.trajectories.frames import read_frame

GROUP = 32
MESSAGE = pa.struct(
    [("role", pa.string()), ("content", pa.string()), ("step_loss_mask", pa.int64())],
)
IMAGE = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
COLUMNS = {
    "messages": pa.list_(MESSAGE),
    "images": pa.list_(IMAGE),
    "reward": pa.float64(),
    "task_id": pa.string(),
    "num_steps": pa.int64(),
    "original_task_id": pa.string(),
    "source_dataset": pa.string(),
    "quality_rank": pa.int64(),
    "metadata": pa.string(),
    "others": pa.string(),
}
"""`others`: keys of an imported line that have no column, and messages that are no plain text, as JSON."""


def _feature(kind: str) -> dict[str, str]:
    return {"dtype": kind, "_type": "Value"}


FEATURES = {
    "messages": {
        "feature": {
            "role": _feature("string"),
            "content": _feature("string"),
            "step_loss_mask": _feature("int64"),
        },
        "_type": "List",
    },
    "images": {"feature": {"_type": "Image"}, "_type": "List"},
    **{
        name: _feature(kind)
        for name, kind in {
            "reward": "float64",
            "task_id": "string",
            "num_steps": "int64",
            "original_task_id": "string",
            "source_dataset": "string",
            "quality_rank": "int64",
            "metadata": "string",
            "others": "string",
        }.items()
    },
}
SCHEMA = pa.schema(
    list(COLUMNS.items()), metadata={"huggingface": json.dumps({"info": {"features": FEATURES}})}
)


class _Sent:
    """A file that is only ever appended to; what was written is taken away to be sent."""

    def __init__(self) -> None:
        self.closed = False
        self._size = 0
        self._waiting: list[bytes] = []

    def write(self, data: bytes) -> int:
        self._waiting.append(bytes(data))
        self._size += len(data)
        return len(data)

    def tell(self) -> int:
        return self._size

    def flush(self) -> None:
        """Nothing is held back."""

    def close(self) -> None:
        self.closed = True

    def take(self) -> bytes:
        found = b"".join(self._waiting)
        self._waiting.clear()
        return found


def table_pieces(entries: Iterable[ReplayEntry]) -> Iterator[bytes]:
    """The table of these entries, piece by piece. Needs what `export_line` needs."""
    sent = _Sent()
    with pq.ParquetWriter(pa.PythonFile(sent, mode="w"), SCHEMA, compression="zstd") as writer:
        rows: list[dict[str, Any]] = []
        for entry in entries:
            rows.append(table_row(entry))
            if len(rows) == GROUP:
                writer.write_table(pa.Table.from_pylist(rows, schema=SCHEMA))
                rows.clear()
                yield sent.take()
        if rows:
            writer.write_table(pa.Table.from_pylist(rows, schema=SCHEMA))
    yield sent.take()


def table_row(entry: ReplayEntry) -> dict[str, Any]:
    """One entry. Raises CannotExport."""
    record, shas = record_of(entry)
    others = {name: value for name, value in record.items() if not _fits(name, value)}
    if not all(map(_is_plain, record["messages"])):
        others["messages"] = record["messages"]
    row = {name: value for name, value in record.items() if name in COLUMNS and name not in others}
    return row | {
        "messages": [_message(message) for message in record["messages"]],
        "images": [{"bytes": read_frame(sha, "png"), "path": f"{sha}.png"} for sha in shas],
        "metadata": json.dumps(record["metadata"], ensure_ascii=False),
        "others": json.dumps(others, ensure_ascii=False) if others else None,
    }


def _fits(name: str, value: Any) -> bool:
    """Whether a key has a column of its type."""
    if name in ("messages", "images", "metadata"):
        return True
    kinds: dict[str, Any] = {"string": str, "int64": int, "double": (int, float)}
    kind = COLUMNS.get(name)
    return kind is not None and isinstance(value, kinds[str(kind)]) and not isinstance(value, bool)


def _is_plain(message: dict[str, Any]) -> bool:
    """Whether the columns hold all of a message."""
    is_text = isinstance(message.get("content"), str) and isinstance(message.get("role"), str)
    return is_text and message.keys() <= {"role", "content", "step_loss_mask"}


def _message(message: dict[str, Any]) -> dict[str, Any]:
    content = message.get("content", message.get("value"))
    return {
        "role": message.get("role") or message.get("from"),
        "content": content if isinstance(content, str) else json.dumps(content, ensure_ascii=False),
        "step_loss_mask": message.get("step_loss_mask"),
    }
