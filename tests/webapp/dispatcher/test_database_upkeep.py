"""Upkeep: what the dispatcher does every few minutes, in pieces."""

import pytest
from django.db import connection

from testing.factories import make_trajectory
from webapp.dispatcher import upkeep


@pytest.mark.django_db(transaction=True)
def test_statistics_are_given_to_sqlite_alone():
    make_trajectory(turns=1)
    upkeep.refresh_statistics()
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute("SELECT COUNT(*) FROM sqlite_stat1 WHERE tbl = 'trajectories_trajectory'")
            assert cursor.fetchone()[0] > 3
