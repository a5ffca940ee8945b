"""Connections of the pool are lent for a piece of work, not for the life of a thread.

A process has few of them (DESKHAND_DB_CONNECTIONS) and may have many threads. One that kept its connection
while it waits for a desktop or a model would keep all others out; so each gives it back, and waits its turn.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

from django.db import close_old_connections, connection
from django.utils.asyncio import async_unsafe


@async_unsafe  # also where it has nothing to do: on a loop it is always a mistake
def give_back_connection() -> None:
    """This thread's, to the pool; not inside of a transaction, and nothing without a pool."""
    if connection.vendor != "postgresql" or connection.in_atomic_block:
        return
    if cast(Any, connection).pool:
        connection.close()


@contextmanager
def lent_connection() -> Iterator[None]:
    """One round of a thread that waits between its rounds. Raises DatabaseError."""
    try:
        yield
    finally:
        close_old_connections()
