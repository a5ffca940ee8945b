"""A Parquet table that is written while it is sent: no second copy on the disk."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

CONTENT_TYPE = "application/vnd.apache.parquet"
GROUP = 32
"""Rows of a row group: what a reader of a stream holds at once."""
IMAGE = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
"""A picture as `datasets` stores it."""


def schema_of(columns: dict[str, pa.DataType], features: dict[str, Any]) -> pa.Schema:
    """The columns, and for `datasets` its `features`, as its `Features.to_dict` writes them."""
    huggingface = json.dumps({"info": {"features": features}})
    return pa.schema(list(columns.items()), metadata={"huggingface": huggingface})


def value_feature(kind: str) -> dict[str, str]:
    """A plain value."""
    return {"dtype": kind, "_type": "Value"}


def list_feature(feature: Any) -> dict[str, Any]:
    return {"feature": feature, "_type": "List"}


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


def parquet_pieces(rows: Iterable[dict[str, Any]], schema: pa.Schema) -> Iterator[bytes]:
    """The table, a row group at a time."""
    sent = _Sent()
    with pq.ParquetWriter(pa.PythonFile(sent, mode="w"), schema, compression="zstd") as writer:
        waiting: list[dict[str, Any]] = []
        for row in rows:
            waiting.append(row)
            if len(waiting) == GROUP:
                writer.write_table(pa.Table.from_pylist(waiting, schema=schema))
                waiting.clear()
                yield sent.take()
        if waiting:
            writer.write_table(pa.Table.from_pylist(waiting, schema=schema))
    yield sent.take()
