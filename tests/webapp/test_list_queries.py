"""Every list page asks the database at most ten times, session and membership included."""

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from testing.web_world import make_world

pytestmark = pytest.mark.django_db

MAX_QUERIES = 10
LISTS = (
    "/experiments/",
    "/queue/",
    "/trajectories/",
    "/tasks/",
    "/tasks/{task_set}/",
    "/replay/",
    "/replay/?verdict=gold",
    "/replay/list/",
    "/replay/list/?sort=failing",
    "/replay/clusters/",
    "/replay/policies/",
    "/replay/reviews/",
    "/replay/guides/",
    "/scanners/",
    "/rewards/",
    "/fleet/",
    "/reports/",
    "/notifications/",
)


def test_a_list_asks_the_database_a_few_times():
    world = make_world()
    client = Client()
    client.force_login(world.users["owner"])
    many = {}
    for path in LISTS:
        path = path.format(**world.paths)
        client.get(path)
        with CaptureQueriesContext(connection) as queries:
            assert client.get(path).status_code == 200, path
        if len(queries) > MAX_QUERIES:
            many[path, len(queries)] = [one["sql"][:200] for one in queries]
    assert not many, "\n".join(f"{key}\n  " + "\n  ".join(sql) for key, sql in many.items())
