"""What the dispatcher does to the database every few minutes: delete old events, refresh statistics."""

from collections.abc import Iterator
from datetime import timedelta

from django.db import connection
from django.utils import timezone

from webapp.live.models import Event

PRUNE_CHUNK = 1000
"""A writer waits for one chunk: 4 ms, at most 84 ms, of 600 000 events on SQLite."""
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


def prune_events(*, older_than: timedelta = timedelta(days=2)) -> Iterator[int]:
    """Delete events that no open page can still need; yields the size of each chunk, one short lock."""
    limit = timezone.now() - older_than
    while True:
        chunk = list(Event.objects.filter(created_at__lt=limit).values_list("pk", flat=True)[:PRUNE_CHUNK])
        if not chunk:
            return
        yield Event.objects.filter(pk__in=chunk).delete()[0]
