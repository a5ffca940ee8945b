"""Silence is told from the distance to the last sign of life, also after the clock was set back."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from testing.factories import make_experiment, make_group, make_trajectory
from training.contracts.types import TrajectoryStatus
from webapp.experiments.models import Attempt, Experiment, ExperimentStatus
from webapp.experiments.services.attempts import lose_stale_experiments
from webapp.fleet.models import Worker
from webapp.fleet.services.workers import beat_worker, lose_stale_workers
from webapp.trajectories.models import Trajectory
from webapp.trajectories.services.trajectories import lose_stale_trajectories

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)


def spoke(sign: timedelta) -> None:
    """The last sign of life of everything, from now."""
    at = timezone.now() + sign
    for model in (Worker, Trajectory, Experiment):
        model.objects.update(heartbeat_at=at)


@pytest.mark.parametrize(
    ("sign", "is_lost"),
    [(-HOUR, True), (timedelta(seconds=-5), False), (timedelta(seconds=5), False), (HOUR, True)],
    ids=["an hour ago", "just now", "a clock that is a little ahead", "before the clock was set back"],
)
def test_who_is_lost(sign: timedelta, is_lost: bool) -> None:
    experiment = make_experiment(status=ExperimentStatus.RUNNING)
    Attempt.objects.create(experiment=experiment, number=1, worker_name="gpu@here")
    worker = beat_worker(name="env@here", queue="env", host="here", pid=7, slots=2, version="1")
    make_trajectory(group=make_group(experiment=experiment), status=TrajectoryStatus.RUNNING, worker=worker)
    spoke(sign)
    found = (lose_stale_workers(), lose_stale_trajectories(), lose_stale_experiments())
    assert [len(lost) for lost in found] == [is_lost] * 3
