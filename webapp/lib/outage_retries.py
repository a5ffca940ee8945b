"""Waits for a database or storage that is away or busy, and for a full disk: neither is anyone's mistake.

What a worker reports is called through here, so that a lock of half a minute, a restart of PostgreSQL or a
disk that is about to be cleared ends no trajectory and no attempt.
"""

import errno
import logging
import sqlite3
import threading
import time
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from django.db import InterfaceError, OperationalError, close_old_connections, connection
from tenacity import RetryCallState, Retrying, retry_if_exception, stop_after_delay, wait_exponential

from webapp.lib.database_pool import give_back_connection
from webapp.lib.media.errors import StorageAway

log = logging.getLogger(__name__)
P = ParamSpec("P")
T = TypeVar("T")

PATIENCE_S = 900.0
"""Longer than a restart or a clean-up takes; what waits longer is reported as an error."""
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 2.0
PASSING_SQLITE_ERRORS = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_IOERR,
}
"""SQLite calls a missing table an OperationalError, too; that one does not pass."""
NOTICED_S = 1.0
"""Shorter calls are no waiting: a trajectory's time goes on."""

_waited = threading.local()


def is_disk_full(error: BaseException) -> bool:
    """Whether there was no room to write, for a file or for the database."""
    if isinstance(error, OSError):
        return error.errno in (errno.ENOSPC, errno.EDQUOT)
    text = str(error).lower()
    return isinstance(error, OperationalError) and ("disk is full" in text or "no space left" in text)


def passes(error: BaseException) -> bool:
    """Whether the same call may work later, without anyone changing the program."""
    if isinstance(error, OSError):
        return is_disk_full(error) or isinstance(error, StorageAway)
    cause = error.__cause__
    if isinstance(cause, sqlite3.Error):
        return getattr(cause, "sqlite_errorcode", 0) & 0xFF in PASSING_SQLITE_ERRORS
    return isinstance(error, (OperationalError, InterfaceError))


def patiently(call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Its answer, as soon as database and disk let it be given. Raises what does not pass in `PATIENCE_S`.

    The call may be made again: it has to be one transaction, or mean the same a second time. Inside of a
    transaction it is made once, since the whole transaction is what may be repeated.
    """
    if connection.in_atomic_block:
        return call(*args, **kwargs)
    retrying = Retrying(
        retry=retry_if_exception(passes),
        stop=stop_after_delay(PATIENCE_S),
        wait=wait_exponential(multiplier=FIRST_PAUSE_S, max=LONGEST_PAUSE_S),
        before_sleep=_tell,
        reraise=True,
    )
    started = time.monotonic()
    try:
        return retrying(call, *args, **kwargs)
    finally:
        give_back_connection()
        took_s = time.monotonic() - started
        if took_s > NOTICED_S:
            _waited.seconds = getattr(_waited, "seconds", 0.0) + took_s


def patient(call: Callable[P, T]) -> Callable[P, T]:
    """`patiently` as a decorator."""

    @wraps(call)
    def waits(*args: P.args, **kwargs: P.kwargs) -> T:
        return patiently(call, *args, **kwargs)

    return waits


def working_time() -> float:
    """A monotonic clock of this thread, in seconds, that stands still while it waits here."""
    return time.monotonic() - getattr(_waited, "seconds", 0.0)


def _tell(state: RetryCallState) -> None:
    error = state.outcome.exception() if state.outcome else None
    what = "the database is locked or away"
    if isinstance(error, StorageAway):
        what = "the storage of screenshots is away"
    elif error and is_disk_full(error):
        what = "the disk is full"
    pause_s = state.next_action.sleep if state.next_action else 0.0
    log.warning("%s, trying again in %.1f s: %s", what, pause_s, error)
    close_old_connections()  # one that broke; a new one is opened by the next try
