"""Waiting trajectories in the database become thin jobs on the env queue, as slots are free."""

import logging
from datetime import timedelta
from itertools import islice

from django.db.models import Case, Count, Q, Value, When
from django.utils import timezone
from kombu.exceptions import OperationalError

from training.contracts.types import Purpose, Source, TrajectoryStatus
from webapp.dispatcher.slot_order import WaitingLine, WaitingTrajectory, fair_order
from webapp.experiments.models import Experiment
from webapp.fleet.env_capacity import count_env_slots, count_env_workers, hosts_at_work
from webapp.lib import disk_room
from webapp.lib.send_job import RUN_TRAJECTORY, send_job
from webapp.lib.silence import silent_for
from webapp.trajectories.models import Trajectory

log = logging.getLogger(__name__)

RESEND_AFTER = timedelta(seconds=30)
"""A sent job that no worker claimed may have died with Redis or a worker: it is sent again."""


def fill_free_slots() -> int:
    """Send jobs for waiting trajectories while slots are free; returns how many were sent.

    One extra job per worker keeps its next trajectory at hand while the last one is scored. None while a
    disk has no room for what they record.
    """
    if disk_room.shortages(*disk_room.OF_EPISODES):
        return 0
    capacity = count_env_slots() + count_env_workers()
    in_flight = Trajectory.objects.filter(sent_at__isnull=False, ended_at=None)
    # What draining workers still run takes no slot of those that count.
    busy = in_flight.exclude(worker__is_draining=True).count()
    free = capacity - busy
    if free <= 0:
        return 0
    sent = 0
    for trajectory_id in islice(fair_order(_lines(capacity, free)), free):
        if not _send(trajectory_id):
            break
        sent += 1
    return sent


def is_waiting() -> Q:
    """Queued, or parked and due to be asked for again."""
    due = Q(status=TrajectoryStatus.PARKED, retry_at__lte=timezone.now())
    return Q(status=TrajectoryStatus.QUEUED) | due


def is_runnable() -> Q:
    """Not bound to a machine, or to one that works: a branch starts where its snapshot lies."""
    return Q(host="") | Q(host__in=hosts_at_work())


def _lines(capacity: int, free: int) -> list[WaitingLine]:
    """The waiting rows by experiment, of each as many as there are free slots."""
    waiting = Trajectory.objects.filter(is_waiting(), is_runnable(), sent_at=None)
    keys = list(waiting.order_by().values_list("experiment_id", "team_id").distinct())
    if not keys:
        return []
    experiments = Experiment.objects.in_bulk({key[0] for key in keys if key[0]})
    out = _num_out()
    people_wait = Q(source=Source.HUMAN) | Q(purpose=Purpose.BRANCH)
    people_first = Case(When(people_wait, then=Value(0)), default=Value(1))
    lines = []
    for experiment_id, team_id in keys:
        experiment = experiments.get(experiment_id) if experiment_id else None
        limit = experiment.settings.desktops.num_desktops if experiment else capacity
        num_out, num_parked = out.get((experiment_id, team_id), (0, 0))
        line = WaitingLine(
            team_id=team_id,
            priority=experiment.priority if experiment else 0,
            num_out=num_out,
            room=limit + 1 - num_out - num_parked if experiment else capacity,
        )
        own = waiting.filter(experiment_id=experiment_id, team_id=team_id).order_by(people_first, "id")
        # Parked ones may go although the others have no room: they must be among those that are read.
        parked = own.filter(status=TrajectoryStatus.PARKED)[:free]
        rows = {row.pk: row for row in (*own[:free], *parked)}
        line.rows.extend(_waiting(row) for row in rows.values())
        lines.append(line)
    return lines


def _waiting(row: Trajectory) -> WaitingTrajectory:
    waits_for_it = row.source == Source.HUMAN or row.purpose == Purpose.BRANCH
    return WaitingTrajectory(row.pk, row.status == TrajectoryStatus.PARKED, waits_for_it)


def _num_out() -> dict[tuple[int | None, int], tuple[int, int]]:
    """(experiment, team) -> (trajectories that were sent and run or will, parked ones that were not)."""
    is_sent = Q(sent_at__isnull=False)
    out = Trajectory.objects.filter(is_sent | Q(status=TrajectoryStatus.PARKED), ended_at=None).order_by()
    counts = out.values("experiment_id", "team_id").annotate(
        num_sent=Count("id", filter=is_sent), num_all=Count("id")
    )
    return {
        (row["experiment_id"], row["team_id"]): (row["num_sent"], row["num_all"] - row["num_sent"])
        for row in counts
    }


def _send(trajectory_id: int) -> bool:
    """Claim the right to send, then send; a failed send gives the claim back."""
    claimed = Trajectory.objects.filter(is_waiting(), pk=trajectory_id, sent_at=None).update(
        sent_at=timezone.now()
    )
    if not claimed:
        return True
    try:
        host = Trajectory.objects.values_list("host", flat=True).get(pk=trajectory_id)
        send_job(RUN_TRAJECTORY, trajectory_id, host=host)
    except OperationalError as error:
        log.warning("cannot send trajectory %s, it stays queued: %s", trajectory_id, error)
        Trajectory.objects.filter(pk=trajectory_id).update(sent_at=None)
        return False
    return True


def resend_forgotten() -> int:
    """Free jobs that were sent long ago and never claimed; they are sent again."""
    unclaimed = Q(status=TrajectoryStatus.QUEUED) | Q(status=TrajectoryStatus.PARKED, worker=None)
    return Trajectory.objects.filter(silent_for(RESEND_AFTER, "sent_at"), unclaimed).update(sent_at=None)
