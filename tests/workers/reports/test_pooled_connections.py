"""Threads of one worker share few PostgreSQL connections: they wait for one and keep none meanwhile."""

import json
import os
import subprocess
import sys

import pytest

from testing.paths import REPOSITORY
from testing.session.environment import ON_POSTGRES

pytestmark = [
    pytest.mark.skipif(not ON_POSTGRES, reason="SQLite has no connections to share"),
    pytest.mark.django_db(transaction=True),
]
NUM_THREADS = 30
EPISODES = f"""
import json, threading
import workers.app
from django.db import connection
from webapp.lib.outage_retries import patiently
from webapp.trajectories.models import Trajectory
from webapp.worker_door import trajectories as door
from workers.reports.current import reports

met = threading.Barrier({NUM_THREADS}, timeout=60)
done, errors, most = [], [], []

def count_connections():
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'episodes'")
        return cursor.fetchone()[0]

def episode(number):
    try:
        for _ in range(5):
            reports().request(door.look_at, [number])
            met.wait()  # all are in the middle of their episodes, as if each waited for its desktop
            most.append(patiently(count_connections))
            patiently(Trajectory.objects.filter(pk=number).count)
        done.append(number)
    except Exception as error:
        errors.append(repr(error))
        met.abort()

threads = [threading.Thread(target=episode, args=(number,)) for number in range({NUM_THREADS})]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(json.dumps({{"done": len(done), "errors": errors[:3], "most": max(most, default=0)}}))
"""


@pytest.mark.parametrize("most", [None, 4], ids=["as workers have it", "as told"])
def test_thirty_episodes_share_a_workers_connections(child_environment, most):
    env = {**child_environment, "DESKHAND_DB_POOL": "1", "PGAPPNAME": "episodes"}
    env.pop("DESKHAND_DB_CONNECTIONS", None)
    env |= {} if most is None else {"DESKHAND_DB_CONNECTIONS": str(most)}
    command = [sys.executable, "-c", EPISODES]
    ended = subprocess.run(command, env=env, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr[-2000:]
    said = json.loads(ended.stdout)
    assert (said["done"], said["errors"]) == (NUM_THREADS, [])
    assert 1 <= said["most"] <= (most or 2)


def test_a_number_of_connections_below_one_is_refused(child_environment):
    env = {**os.environ, **child_environment, "DESKHAND_DB_CONNECTIONS": "0"}
    command = [sys.executable, "-c", "import workers.app"]
    ended = subprocess.run(command, env=env, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert "DESKHAND_DB_CONNECTIONS=0: use 1 or more" in ended.stderr
