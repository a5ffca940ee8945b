"""Replay entries as a Parquet table, written as it is sent; `datasets` opens it with its images.

The columns are the keys of a JSON line, with `images` as {bytes, path} and `metadata` as JSON text.
"""

import json
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from webapp.replay.formats.slime_export import record_of
from webapp.replay.models import ReplayEntry
from webapp.trajectories.dataset.parquet_stream import (
    IMAGE,
    list_feature,
    parquet_pieces,
    schema_of,
    value_feature,
)
from webapp.trajectories.frame_files import read_frame

MESSAGE = pa.struct([("role", pa.string()), ("content", pa.string()), ("step_loss_mask", pa.int64())])
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


PLAIN = {
    **dict.fromkeys(("task_id", "original_task_id", "source_dataset", "metadata", "others"), "string"),
    **dict.fromkeys(("num_steps", "quality_rank"), "int64"),
    "reward": "float64",
}
MESSAGE_FEATURE = {
    "role": value_feature("string"),
    "content": value_feature("string"),
    "step_loss_mask": value_feature("int64"),
}
FEATURES = {
    "messages": list_feature(MESSAGE_FEATURE),
    "images": list_feature({"_type": "Image"}),
    **{name: value_feature(PLAIN[name]) for name in COLUMNS if name in PLAIN},
}
SCHEMA = schema_of(COLUMNS, FEATURES)


def table_pieces(entries: Iterable[ReplayEntry]) -> Iterator[bytes]:
    """The table of these entries, piece by piece. Needs what `export_line` needs."""
    return parquet_pieces(map(table_row, entries), SCHEMA)


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
