"""Upkeep: what the dispatcher does every few minutes."""

import pytest
from django.db import connection

from testing.factories import make_trajectory
from webapp.live.database_upkeep import upkeep


@pytest.mark.django_db(transaction=True)
def test_upkeep_gives_sqlite_statistics_and_does_nothing_to_postgresql():
    make_trajectory(turns=1)
    upkeep()
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute("SELECT COUNT(*) FROM sqlite_stat1 WHERE tbl = 'trajectories_trajectory'")
            assert cursor.fetchone()[0] > 3
