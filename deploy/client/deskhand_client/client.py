"""The client: every operation of the API, and what takes several of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

from deskhand_client import models
from deskhand_client.operations import Operations

FINAL = ("finished", "failed", "cancelled")
"""Statuses that an experiment does not leave by itself."""
POLL_S = 2.0


class Client(Operations):
    """One server, as the owner of a token.

    with Client("https://deskhand.example", "dh_...") as deskhand:
        run = deskhand.launch_experiment(name="mine", preset="first-desk")
        deskhand.wait_for_experiment(run["id"])
    """

    def every(self, operation: Callable[..., Any], *place: Any, **query: Any) -> Iterator[Any]:
        """All rows of a paged list: `client.every(client.list_groups, 12)`."""
        after: str | None = None
        while True:
            page = operation(*place, **query, **({"after": after} if after else {}))
            yield from page["items"]
            after = page["next"]
            if not after:
                return

    def wait_for_experiment(
        self,
        pk: int,
        *,
        timeout_s: float | None = None,
        poll_s: float = POLL_S,
        tell: Callable[[models.ExperimentDetail], None] | None = None,
    ) -> models.ExperimentDetail:
        """Look at it until it has ended, or waits as paused; `tell` gets every look. Raises TimeoutError."""
        began = time.monotonic()
        while True:
            seen = self.show_experiment(pk)
            if tell:
                tell(seen)
            if seen["status"] in (*FINAL, "paused"):
                return seen
            if timeout_s is not None and time.monotonic() - began > timeout_s:
                raise TimeoutError(f"experiment {pk} is {seen['status']} after {timeout_s:g} s")
            time.sleep(poll_s)

    def follow_log(self, pk: int, name: str, *, poll_s: float = POLL_S) -> Iterator[models.LogLine]:
        """The end of a log file, then every line as it is written; for ever."""
        after: int | None = None
        while True:
            chunk = self.read_log(pk, name, after=after)
            yield from chunk["lines"]
            is_at_end = chunk["end"] >= chunk["num_bytes"] or not chunk["lines"]
            after = chunk["end"]
            if is_at_end:
                time.sleep(poll_s)
