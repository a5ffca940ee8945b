"""The next microbatch is made while the device works on the current one."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Row = TypeVar("Row")
Batch = TypeVar("Batch")


def prefetched(rows: Sequence[Row], make: Callable[[Row], Batch]) -> Iterator[Batch]:
    """`make(row)` for every row in order, one ahead of the consumer, in a thread of its own."""
    with ThreadPoolExecutor(1, thread_name_prefix="collate") as thread:
        coming = thread.submit(make, rows[0]) if rows else None
        for row in [*rows[1:], None]:
            if coming is None:
                return
            made = coming.result()
            coming = None if row is None else thread.submit(make, row)
            yield made
