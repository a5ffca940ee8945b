"""An env worker's slot in a thread of the test, on a real desktop."""

import threading
from collections.abc import Iterator

import pytest
from django.db import connection

from training.contracts.types import TrajectoryStatus
from webapp.trajectories.models import Trajectory
from workers.env import slots, trajectory_job


@pytest.fixture
def env_thread(desk_client, settings, tmp_path) -> Iterator[None]:
    """Runs every queued trajectory as an env worker's slot does; only the broker in between is left out."""
    settings.DESKHOST_SOCKET = desk_client.socket_path
    settings.MEDIA_ROOT = str(tmp_path)
    stopping = threading.Event()

    def work() -> None:
        while not stopping.wait(0.05):
            for row in Trajectory.objects.filter(status=TrajectoryStatus.QUEUED).order_by("pk"):
                trajectory_job.run(row.pk)
        slots.drop_environment()
        connection.close()

    thread = threading.Thread(target=work)
    thread.start()
    yield
    stopping.set()
    thread.join(60)
