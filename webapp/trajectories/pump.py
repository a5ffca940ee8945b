"""The pump: waiting trajectories in the database -> thin jobs on the env queue."""

import logging
from datetime import timedelta

from django.db.models import Case, Q, Value, When
from django.utils import timezone
from kombu.exceptions import OperationalError

from training.types import Source, TrajectoryStatus
from webapp.experiments.models import Experiment
from webapp.fleet.services import count_env_slots, count_env_workers
from webapp.lib.queue import RUN_TRAJECTORY, send_job
from webapp.trajectories.models import Trajectory

log = logging.getLogger(__name__)

RESEND_AFTER = timedelta(seconds=30)
"""A sent job that no worker claimed may have died with Redis or a worker: it is sent again."""


def pump() -> int:
    """Send jobs for waiting trajectories while slots are free; returns how many were sent.

    One extra job per worker keeps its next trajectory at hand while the last one is scored.
    """
    capacity = count_env_slots() + count_env_workers()
    in_flight = Trajectory.objects.filter(sent_at__isnull=False, ended_at=None)
    # What draining workers still run takes no slot of those that count.
    busy = in_flight.exclude(worker__is_draining=True).count()
    sent = 0
    limits: dict[int | None, int] = {}
    waiting = Trajectory.objects.filter(is_waiting(), sent_at=None)
    people_first = Case(When(source=Source.HUMAN, then=Value(0)), default=Value(1))
    in_order = waiting.select_related("experiment").order_by(people_first, "id")
    for trajectory in in_order[: max(0, capacity - busy)]:
        key = trajectory.experiment_id
        if key not in limits:
            limits[key] = _free_desktops(trajectory.experiment, capacity)
        is_parked = trajectory.status == TrajectoryStatus.PARKED  # has its place among them already
        if limits[key] <= 0 and not is_parked:
            continue
        if not _send(trajectory.pk):
            break
        limits[key] -= not is_parked
        sent += 1
    return sent


def is_waiting() -> Q:
    """Queued, or parked and due to be asked for again."""
    due = Q(status=TrajectoryStatus.PARKED, retry_at__lte=timezone.now())
    return Q(status=TrajectoryStatus.QUEUED) | due


def _free_desktops(experiment: Experiment | None, capacity: int) -> int:
    if experiment is None:
        return capacity
    limit = experiment.config.get("desktops", {}).get("num_desktops", capacity)
    is_out = Q(sent_at__isnull=False) | Q(status=TrajectoryStatus.PARKED)
    in_flight = Trajectory.objects.filter(is_out, experiment=experiment, ended_at=None)
    return limit + 1 - in_flight.count()


def _send(trajectory_id: int) -> bool:
    """Claim the right to send, then send; a failed send gives the claim back."""
    claimed = Trajectory.objects.filter(is_waiting(), pk=trajectory_id, sent_at=None).update(
        sent_at=timezone.now()
    )
    if not claimed:
        return True
    try:
        send_job(RUN_TRAJECTORY, trajectory_id)
    except OperationalError as error:
        log.warning("cannot send trajectory %s, it stays queued: %s", trajectory_id, error)
        Trajectory.objects.filter(pk=trajectory_id).update(sent_at=None)
        return False
    return True


def resend_forgotten() -> int:
    """Free jobs that were sent long ago and never claimed; the pump sends them again."""
    unclaimed = Q(status=TrajectoryStatus.QUEUED) | Q(status=TrajectoryStatus.PARKED, worker=None)
    limit = timezone.now() - RESEND_AFTER
    return Trajectory.objects.filter(unclaimed, sent_at__lt=limit).update(sent_at=None)
