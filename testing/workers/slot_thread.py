"""A slot of an env worker in a thread, without the broker in between."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from django.db import connection

from training.contracts.types import TrajectoryStatus
from webapp.trajectories.models import Trajectory
from workers.env import slots, trajectory_job


def run_queued() -> None:
    for row in Trajectory.objects.filter(status=TrajectoryStatus.QUEUED).order_by("pk"):
        trajectory_job.run(row.pk)


@contextmanager
def slot_thread(*, patience_s: float, run: Callable[[], None] = run_queued) -> Iterator[None]:
    """Runs trajectories again and again; at the end, the one that runs has `patience_s` to finish."""
    stopping = threading.Event()

    def work() -> None:
        while not stopping.wait(0.05):
            run()
        slots.drop_environment()
        connection.close()

    thread = threading.Thread(target=work)
    thread.start()
    yield
    stopping.set()
    thread.join(patience_s)
