"""Several runs at once, each on its own share of this machine's cores."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from typing import Any, TypeVar

Run = dict[str, Any]
Key = TypeVar("Key")


def cores_of(place: int, at_once: int) -> list[int]:
    """The cores of one of `at_once` runs; all of them when it is alone."""
    cores = sorted(os.sched_getaffinity(0))
    return cores[place * len(cores) // at_once : (place + 1) * len(cores) // at_once] or cores


def side_by_side(keys: Sequence[Key], measure: Callable[[Key, int], Run], at_once: int) -> list[Run]:
    """`measure` (key, number of cores) of every key, `at_once` of them at a time; in their order."""
    shares: SimpleQueue[list[int]] = SimpleQueue()
    for place in range(at_once):
        shares.put(cores_of(place, at_once))

    def work(key: Key) -> Run:
        cores = shares.get()
        os.sched_setaffinity(0, cores)  # of this thread, inherited by everything that it starts
        try:
            return measure(key, len(cores))
        finally:
            shares.put(cores)

    with ThreadPoolExecutor(at_once) as threads:
        return list(threads.map(work, keys))
