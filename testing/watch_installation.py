"""What the integration tests see of a running installation from outside."""

import sqlite3
import time
from collections.abc import Callable
from typing import Any

from testing.private_installation import Instance


def rows(deskhand: Instance, query: str) -> list[tuple[Any, ...]]:
    """Read the SQLite file beside the running product."""
    database = sqlite3.connect(f"file:{deskhand.folder}/deskhand.sqlite3?mode=ro", uri=True, timeout=30)
    try:
        return database.execute(query).fetchall()
    finally:
        database.close()


def wait_for(what: str, condition: Callable[[], Any], *, patience_s: float) -> Any:
    """The condition's first true answer; fails the test after `patience_s`."""
    deadline = time.monotonic() + patience_s
    while not (answer := condition()):
        assert time.monotonic() < deadline, f"waited {patience_s} s in vain for: {what}"
        time.sleep(0.3)
    return answer
