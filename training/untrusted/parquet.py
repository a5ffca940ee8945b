"""Text columns of a Parquet file that others made: decoded in a process of its own, within limits.

A few KiB may decode to gigabytes, and what the file says of its sizes may be wrong: the process that decodes
gets no more memory than the limit.

    python -m training.untrusted.parquet FILE MAX_BYTES COLUMN...     # a JSON object a row, on stdout
"""

import json
import os
import resource
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

MEMORY_BYTES = 1 << 30
MAX_ROWS = 100_000
ROWS_AT_ONCE = 8
BAD, TOO_LARGE = 3, 4
"""Exit codes; stderr says what is wrong."""
TIMEOUT_S = 120


class BadTable(ValueError):
    """Raised when a file is no table that may be read; the message says why."""


class TableTooLarge(BadTable):
    """Raised when its rows hold more than they may."""


def read_rows(file: Path, columns: Sequence[str], *, max_bytes: int) -> list[dict[str, Any]]:
    """Those of the columns that the file has, which must hold text. Raises BadTable."""
    command = [sys.executable, "-m", "training.untrusted.parquet", str(file), str(max_bytes), *columns]
    # Its other pools reserve far more than they use, which counts against the limit.
    environment = {**os.environ, "ARROW_DEFAULT_MEMORY_POOL": "system", "OPENBLAS_NUM_THREADS": "1"}
    root = Path(__file__).resolve().parents[2]
    try:
        done = subprocess.run(
            command, cwd=root, env=environment, capture_output=True, check=False, timeout=TIMEOUT_S
        )
    except subprocess.TimeoutExpired as error:
        raise BadTable(f"it was not read within {TIMEOUT_S} s") from error
    if done.returncode == BAD:
        raise BadTable(done.stderr.decode(errors="replace").strip())
    if done.returncode:
        raise TableTooLarge(f"it holds more than {max_bytes >> 20} MiB")
    return [json.loads(line) for line in done.stdout.splitlines()]


def _rows(file: str, max_bytes: int, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
    import pyarrow
    import pyarrow.parquet

    table = pyarrow.parquet.ParquetFile(file)
    metadata = table.metadata
    sizes = [metadata.row_group(number).total_byte_size for number in range(metadata.num_row_groups)]
    if metadata.num_rows > MAX_ROWS:
        raise BadTable(f"it has more than {MAX_ROWS} rows")
    if sum(sizes) > max_bytes:
        raise TableTooLarge("by what it says of itself")
    found = [column for column in table.schema_arrow if column.name in columns]
    if wrong := next((one.name for one in found if not pyarrow.types.is_string(one.type)), ""):
        raise BadTable(f"column {wrong} must hold text")
    left = max_bytes
    for batch in table.iter_batches(
        batch_size=ROWS_AT_ONCE, columns=[column.name for column in found], use_threads=False
    ):
        left -= batch.nbytes
        if left < 0:
            raise TableTooLarge("its rows do")
        yield from batch.to_pylist()


def main(file: str, max_bytes: str, *columns: str) -> int:
    """The process that decodes."""
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES, MEMORY_BYTES))
    try:
        for row in _rows(file, int(max_bytes), columns):
            sys.stdout.write(json.dumps(row) + "\n")
    except (TableTooLarge, MemoryError):
        return TOO_LARGE
    except (ValueError, OSError, NotImplementedError, KeyError) as error:  # pyarrow's own are of these
        sys.stderr.write(str(error)[:300])
        return BAD
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
