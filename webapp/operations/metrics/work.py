"""Figures of the work: experiments, trajectories, turns, errors, alarms.

What happened lately is counted over a window that the name tells, from the database: any web process
answers the same, also after a restart.
"""

from collections.abc import Iterator
from datetime import timedelta

from django.db.models import Count, Min, Q
from django.utils import timezone
from prometheus_client.core import Metric

from training.contracts.types import FINAL_STATUSES, TrajectoryStatus
from webapp.experiments.models import ACTIVE_STATUSES, AlarmRecord, AlarmStatus, Experiment, ExperimentStatus
from webapp.operations.metrics.families import gauge
from webapp.trajectories.models import Trajectory, TurnRecord

LATELY = timedelta(minutes=5)
MINUTE = timedelta(minutes=1)
WAITING, SENT = "waiting", "sent"
"""The two halves of `queued`: in the database, and in Redis."""


def work_metrics() -> Iterator[Metric]:
    """Five queries."""
    yield _experiments()
    yield from _open_trajectories()
    yield from _ended()
    yield _turns()
    yield _alarms()


def _experiments() -> Metric:
    rows = {(str(status),): 0.0 for status in ExperimentStatus}
    for status, number in Experiment.objects.order_by().values_list("status").annotate(Count("pk")):
        rows[status,] = number
    return gauge("experiments", "Experiments by status.", rows, "status")


def _open_trajectories() -> Iterator[Metric]:
    phases = [WAITING, SENT, *(str(one) for one in TrajectoryStatus if one not in FINAL_STATUSES)]
    rows = {(phase,): 0.0 for phase in phases if phase != TrajectoryStatus.QUEUED}
    now = timezone.now()
    oldest = now
    is_sent = Count("pk", filter=Q(sent_at__isnull=False))
    found = Trajectory.objects.filter(ended_at=None).order_by().values("status")
    for row in found.annotate(number=Count("pk"), num_sent=is_sent, oldest=Min("created_at")):
        if row["status"] == TrajectoryStatus.QUEUED:
            rows[WAITING,] = row["number"] - row["num_sent"]
            rows[SENT,] = row["num_sent"]
            oldest = row["oldest"]
        else:
            rows[row["status"],] = row["number"]
    yield gauge("trajectories", "Trajectories that have not ended, by what they are at.", rows, "phase")
    text = "Age of the oldest trajectory that no worker has claimed, 0 without one."
    yield gauge("trajectories_oldest_queued_seconds", text, (now - oldest).total_seconds())


def _ended() -> Iterator[Metric]:
    ended = {(str(status),): 0.0 for status in FINAL_STATUSES}
    errors: dict[tuple[str, ...], float] = {}
    rows = Trajectory.objects.filter(ended_at__gt=timezone.now() - LATELY).order_by()
    for status, kind, number in rows.values_list("status", "error_kind").annotate(Count("pk")):
        ended[status,] = ended.get((status,), 0) + number
        if status == TrajectoryStatus.ERRORED:
            errors[kind or "unknown",] = number
    yield gauge("trajectories_ended_5m", "Trajectories that ended in 5 minutes.", ended, "status")
    yield gauge("trajectory_errors_5m", "Trajectories that errored in 5 minutes, by kind.", errors, "kind")


def _turns() -> Metric:
    since = timezone.now() - MINUTE
    lately = Trajectory.objects.filter(Q(ended_at=None) | Q(ended_at__gt=since))
    turns = TurnRecord.objects.filter(trajectory__in=lately.values("pk"), completed_at__gt=since)
    return gauge("turns_per_second", "Turns completed in the last minute, by 60.", turns.count() / 60)


def _alarms() -> Metric:
    rows = AlarmRecord.objects.filter(experiment__status__in=ACTIVE_STATUSES)
    rows = rows.exclude(status=AlarmStatus.CLEARED).order_by()
    counts = rows.values_list("name", "severity").annotate(Count("pk"))
    found = {(name, severity): float(number) for name, severity, number in counts}
    return gauge("alarms", "Alarms that fire in active experiments.", found, "name", "severity")
