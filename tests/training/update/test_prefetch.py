"""Microbatches made ahead: in order, one at a time, and no error is lost."""

from __future__ import annotations

import threading

import pytest

from training.update.microbatch_maker import prefetched


def test_rows_come_in_order_from_another_thread() -> None:
    made = list(prefetched([3, 1, 2], lambda row: (row, threading.current_thread().name)))
    assert [row for row, _ in made] == [3, 1, 2]
    assert all(name.startswith("collate") for _, name in made)


def test_only_one_row_is_made_ahead() -> None:
    seen: list[int] = []
    coming = prefetched(range(5), lambda row: seen.append(row) or row)
    assert next(coming) == 0
    assert next(coming) == 1
    assert 3 not in seen
    coming.close()


def test_an_error_reaches_the_consumer_at_its_row() -> None:
    coming = prefetched([1, 0], lambda row: 1 / row)
    assert next(coming) == 1
    with pytest.raises(ZeroDivisionError):
        next(coming)


def test_no_rows_no_microbatches() -> None:
    assert list(prefetched([], str)) == []
