"""What the dispatcher does to the database every few minutes: delete old events, refresh statistics."""

from datetime import timedelta

from django.db import connection
from django.utils import timezone

from webapp.live.models import Event

PRUNE_CHUNK = 5000
ANALYSIS_LIMIT = 1000
"""Rows that SQLite looks at per index: 16 ms with a million turns, and as good as all of them."""


def upkeep() -> None:
    """One round; cheap enough for every few minutes."""
    prune_events()
    refresh_statistics()


def refresh_statistics() -> None:
    """Tell SQLite how its tables look; PostgreSQL finds out by itself.

    Without statistics SQLite reads a team's 100 000 trajectories to find the ten of one experiment.
    """
    if connection.vendor != "sqlite":
        return
    with connection.cursor() as cursor:
        cursor.execute(f"PRAGMA analysis_limit={ANALYSIS_LIMIT}")
        cursor.execute("ANALYZE")


def prune_events(*, older_than: timedelta = timedelta(days=2)) -> int:
    """Delete events that no open page can still need; returns how many. Small chunks, short locks."""
    limit = timezone.now() - older_than
    num_deleted = 0
    while True:
        chunk = list(Event.objects.filter(created_at__lt=limit).values_list("pk", flat=True)[:PRUNE_CHUNK])
        if not chunk:
            return num_deleted
        num_deleted += Event.objects.filter(pk__in=chunk).delete()[0]
