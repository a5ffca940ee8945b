"""Chooses the way: each function of the contract is called here, or told and asked over HTTPS."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cache, wraps
from pathlib import Path
from typing import ParamSpec, TypeVar

from django.conf import settings

from webapp.lib.database_pool import give_back_connection
from webapp.lib.outage_retries import patiently
from webapp.lib.remote_calls import call_of
from workers.door.https_door import HttpsDoor
from workers.door.spool import Spool, SpooledFrame

P = ParamSpec("P")
T = TypeVar("T")


_opening = threading.Lock()


def https_door() -> HttpsDoor:
    """Of this joined host: one for all threads of a process, else no report would wake who delivers it."""
    with _opening:
        return open_door()


@cache
def open_door() -> HttpsDoor:
    """Call `https_door`: alone, two threads would open two. The spool lies in the data folder."""
    assert settings.JOINED is not None
    return HttpsDoor(settings.JOINED, Spool(Path(settings.DATA_DIR) / "spool.sqlite3"))


def is_joined() -> bool:
    """Whether this host works for an installation elsewhere."""
    return settings.JOINED is not None


def through(function: Callable[P, T]) -> Callable[P, T]:
    """The function as workers call it. Raises database errors, also of a web that is away."""
    row = call_of(function)

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        if not is_joined():
            return (
                patiently(function, *args, **kwargs) if row.is_patient else _once(function, *args, **kwargs)
            )
        if row.is_report:
            patiently(https_door().tell, row, args, kwargs)
            return None  # type: ignore[return-value]  # reports have no answer
        if row.is_patient:
            return patiently(https_door().ask, row, args, kwargs)  # type: ignore[no-any-return]
        return https_door().ask(row, args, kwargs)  # type: ignore[no-any-return]

    return call


def _once(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    try:
        return function(*args, **kwargs)
    finally:
        give_back_connection()


def tell_with_frame(
    function: Callable[P, None], frame: SpooledFrame, *args: P.args, **kwargs: P.kwargs
) -> None:
    """A report of a joined host that names a screenshot."""
    row = call_of(function)
    assert row.is_report
    patiently(https_door().tell, row, args, kwargs, frame)
