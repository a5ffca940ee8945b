"""Statements that each worker makes every second or two: few, and not compiled anew each time.

Django takes two to ten times longer to write such a statement than a database to answer it.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any

from django.db import connections
from django.db.models import QuerySet

NUM_REMEMBERED = 1024
"""Statements, of each as many as there are hosts."""

Sql = tuple[str, tuple[Any, ...]]
"""And its parameters."""


@lru_cache(maxsize=NUM_REMEMBERED)
def compiled(write: Callable[..., QuerySet[Any, Any]], *args: str) -> Sql:
    """The query `write(*args)`. It must depend on nothing else, as on the time."""
    return write(*args).query.sql_with_params()


def first_row(sql: str, params: Sequence[Any]) -> tuple[Any, ...] | None:
    """Of its answer, as the driver reads it: SQLite's booleans are numbers."""
    with connections["default"].cursor() as cursor:
        cursor.execute(sql, [_adapted(value) for value in params])
        rows = cursor.fetchall()  # to the end: SQLite commits an UPDATE that has returned everything
    return tuple(rows[0]) if rows else None


def execute(sql: str, params: Sequence[Any]) -> None:
    """A statement without an answer."""
    with connections["default"].cursor() as cursor:
        cursor.execute(sql, [_adapted(value) for value in params])


def _adapted(value: Any) -> Any:
    """SQLite takes times as texts."""
    if isinstance(value, datetime):
        return connections["default"].ops.adapt_datetimefield_value(value)
    return value
