"""What the dispatcher does to the database every few minutes: delete old events, refresh statistics."""

from django.db import connection

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
