"""Long upkeep in small pieces between two ticks: deleting 600 000 rows must hold up no one.

A task is a generator that yields after each short transaction. All are begun anew every few minutes.
"""

import time
from collections.abc import Callable, Iterator

from django.db import connection

from webapp.accounts.services.audit_log import prune_audit_log
from webapp.accounts.services.sent_requests import prune_sent_requests
from webapp.experiments.services.gpu_samples import prune_gpu_samples
from webapp.live.services.event_pruning import prune_events

UpkeepTask = Callable[[], Iterator[object]]

BUDGET_S = 0.1
"""Of one tick; a piece that was begun is finished."""

_tasks: list[UpkeepTask] = []


ANALYSIS_LIMIT = 1000
"""Rows that SQLite looks at per index: 16 ms with a million turns, and as good as all of them."""


def refresh_statistics() -> None:
    """Tell SQLite how its tables look; PostgreSQL finds out by itself.

    Without statistics SQLite reads a team's 100 000 trajectories to find the ten of one experiment.
    """
    if connection.vendor != "sqlite":
        return
    with connection.cursor() as cursor:
        cursor.execute(f"PRAGMA analysis_limit={ANALYSIS_LIMIT}")
        cursor.execute("ANALYZE")


def register(task: UpkeepTask) -> None:
    """Further applications have theirs done, too."""
    _tasks.append(task)


class Upkeep:
    """What is left of the round."""

    def __init__(self) -> None:
        self._round: Iterator[object] = iter(())

    def begin(self) -> None:
        """A new round; what is left of the last one comes up in it again."""
        self._round = _round()

    def go_on(self) -> None:
        """Some pieces, for `BUDGET_S`."""
        ends = time.monotonic() + BUDGET_S
        for _ in self._round:
            if time.monotonic() >= ends:
                break


def _round() -> Iterator[object]:
    refresh_statistics()
    yield None
    yield from prune_events()
    prune_gpu_samples()
    yield None
    prune_audit_log()
    yield None
    prune_sent_requests()
    for task in _tasks:
        yield None
        yield from task()
