"""Waiting trajectories in the database become thin jobs on the env queue, as slots are free."""

import logging
from collections import Counter
from collections.abc import Mapping
from datetime import timedelta
from itertools import islice
from typing import NamedTuple

from django.db.models import Case, Count, Exists, OuterRef, Q, QuerySet, Value, When
from django.utils import timezone
from kombu.exceptions import OperationalError

from training.contracts.config import DesktopConfig
from training.contracts.types import Purpose, Source, TrajectoryStatus
from webapp.dispatcher.slot_order import WaitingLine, WaitingTrajectory, fair_order
from webapp.experiments.models import Attempt, AttemptStatus, Experiment
from webapp.fleet.queries.env_capacity import env_capacity, host_names_at_work, kept_capacity
from webapp.lib import disk_room
from webapp.lib.heartbeat_age import silent_for
from webapp.lib.send_job import RUN_TRAJECTORY, send_job
from webapp.lib.statements.short_statements import compiled, first_row
from webapp.trajectories.models import Trajectory
from webapp.trajectories.services.parking import is_due

log = logging.getLogger(__name__)

RESEND_AFTER = timedelta(seconds=30)
"""A sent job that no worker claimed may have died with Redis or a worker: it is sent again."""
LIMIT = "config__desktops__num_desktops"
DEFAULT_LIMIT = DesktopConfig().num_desktops
"""Of a config that is older than the knob. Whole configs take longer to read than all else here."""

Line = tuple[int | None, int]
"""Experiment and team."""


class Out(NamedTuple):
    """Trajectories of a line that wait no longer."""

    num_sent: int
    """They run, or will."""
    num_parked: int
    """They wait for a desktop elsewhere, and were not sent again."""
    num_busy: int
    """Of those that were sent: what draining workers still run takes no slot of those that count."""


NOTHING_OUT = Out(0, 0, 0)


def fill_free_slots(*, only_many: bool = False) -> int:
    """Send jobs for waiting trajectories while slots are free; returns how many were sent.

    One extra job per worker keeps its next trajectory at hand while the last one is scored. `only_many`:
    none before half of the extra jobs are gone, since on a large fleet a slot becomes free many times a
    second. None while a disk has no room for what they record.
    """
    if first_row(*compiled(_may_wait)) is None or disk_room.shortages(*disk_room.OF_EPISODES):
        return 0
    slots, num_workers = env_capacity()
    capacity, out = slots + num_workers, _out()
    free = capacity - sum(one.num_busy for one in out.values())
    if free <= 0 or (only_many and free < num_workers // 2):
        return 0
    sent, lines = 0, _lines(capacity, free, out)
    hosts = {row.pk: row.host for line in lines for row in line.rows}
    for trajectory_id in islice(fair_order(lines, _room_of_teams(capacity, lines, out)), free):
        if not _send(trajectory_id, hosts[trajectory_id]):
            break
        sent += 1
    return sent


def _room_of_teams(capacity: int, lines: list[WaitingLine], out: Mapping[Line, Out]) -> dict[int, int]:
    """What each waiting team may send: slots of hosts that work for another one only are not for it."""
    kept = kept_capacity()
    if not kept:
        return {}
    busy = Counter[int]()
    for (_, team), one in out.items():
        busy[team] += one.num_busy
    for_all = capacity - kept.total()
    return {line.team_id: for_all + kept[line.team_id] - busy[line.team_id] for line in lines}


def _may_wait() -> QuerySet[Trajectory, int]:
    """A row of those that `is_waiting` chooses from; most ticks end without one."""
    may = Trajectory.objects.filter(
        status__in=[TrajectoryStatus.QUEUED, TrajectoryStatus.PARKED], sent_at=None
    )
    return may.values_list("pk", flat=True)[:1]


def is_waiting() -> Q:
    """Queued, or parked and due to be asked for again."""
    return Q(status=TrajectoryStatus.QUEUED) | is_due()


def is_runnable() -> Q:
    """Not bound to a machine, or to one that works: a branch starts where its snapshot lies.

    Nor is its policy server still starting: the trainer may ask for groups before it is there, and each try
    would be lost.
    """
    starting = Attempt.objects.filter(experiment=OuterRef("experiment"), status=AttemptStatus.CLAIMED)
    has_host = Q(host="") | Q(host__in=host_names_at_work())
    return has_host & ~Q(Exists(starting), source=Source.POLICY)


def _lines(capacity: int, free: int, all_out: Mapping[Line, Out]) -> list[WaitingLine]:
    """The waiting rows by experiment, of each as many as there are free slots."""
    waiting = Trajectory.objects.filter(is_waiting(), is_runnable(), sent_at=None)
    keys = list(waiting.order_by().values_list("experiment_id", "team_id").distinct())
    if not keys:
        return []
    ids = {key[0] for key in keys if key[0]}
    wanted = Experiment.objects.filter(pk__in=ids).values_list("pk", "priority", LIMIT)
    experiments = {pk: (priority, limit or DEFAULT_LIMIT) for pk, priority, limit in wanted}
    people_wait = Q(source=Source.HUMAN) | Q(purpose=Purpose.BRANCH)
    people_first = Case(When(people_wait, then=Value(0)), default=Value(1))
    lines = []
    for experiment_id, team_id in keys:
        priority, limit = experiments.get(experiment_id, (0, capacity))
        out = all_out.get((experiment_id, team_id), NOTHING_OUT)
        line = WaitingLine(
            team_id=team_id,
            priority=priority,
            num_out=out.num_sent,
            room=limit + 1 - out.num_sent - out.num_parked if experiment_id in experiments else capacity,
        )
        own = waiting.filter(experiment_id=experiment_id, team_id=team_id).order_by(people_first, "id")
        read = own.values_list("pk", "host", "status", "source", "purpose")
        rows = {row[0]: row for row in read[:free]}
        if out.num_parked:
            # They may go although the others have no room: they must be among those that are read.
            rows |= {row[0]: row for row in read.filter(status=TrajectoryStatus.PARKED)[:free]}
        line.rows.extend(_waiting(*row) for row in rows.values())
        lines.append(line)
    return lines


def _waiting(pk: int, host: str, status: str, source: str, purpose: str) -> WaitingTrajectory:
    waits_for_it = source == Source.HUMAN or purpose == Purpose.BRANCH
    return WaitingTrajectory(pk, status == TrajectoryStatus.PARKED, waits_for_it, host)


def _out() -> dict[Line, Out]:
    """What is out of every experiment, or of every team outside of any; one query."""
    is_sent = Q(sent_at__isnull=False)
    rows = Trajectory.objects.filter(is_sent | Q(status=TrajectoryStatus.PARKED), ended_at=None).order_by()
    counts = rows.values("experiment_id", "team_id").annotate(
        num_sent=Count("id", filter=is_sent),
        num_all=Count("id"),
        num_busy=Count("id", filter=is_sent & ~Q(worker__is_draining=True)),
    )
    return {
        (row["experiment_id"], row["team_id"]): Out(
            row["num_sent"], row["num_all"] - row["num_sent"], row["num_busy"]
        )
        for row in counts
    }


def _send(trajectory_id: int, host: str) -> bool:
    """Claim the right to send, then send; a failed send gives the claim back."""
    claimed = Trajectory.objects.filter(is_waiting(), pk=trajectory_id, sent_at=None).update(
        sent_at=timezone.now()
    )
    if not claimed:
        return True
    try:
        send_job(RUN_TRAJECTORY, trajectory_id, only=host)
    except OperationalError as error:
        log.warning("cannot send trajectory %s, it stays queued: %s", trajectory_id, error)
        Trajectory.objects.filter(pk=trajectory_id).update(sent_at=None)
        return False
    return True


def resend_forgotten() -> int:
    """Free jobs that were sent long ago and never claimed; they are sent again."""
    unclaimed = Q(status=TrajectoryStatus.QUEUED) | Q(status=TrajectoryStatus.PARKED, worker=None)
    return Trajectory.objects.filter(silent_for(RESEND_AFTER, "sent_at"), unclaimed).update(sent_at=None)
