"""What has to be done now and then, by the dispatcher: forget old events, keep the planner informed."""

from django.db import connection

from webapp.live.publish import prune_events

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
