"""What happened that a rule asks for, read from the rows that tell of it anyway.

Nothing calls this room when something happens, so nothing in it can hold up training; what happened while no
dispatcher ran is found afterwards.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Max, QuerySet
from django.urls import reverse

from webapp.analysis.verdict.sentence import described
from webapp.experiments.models import FINAL_STATUSES, AlarmRecord, Experiment, ExperimentStatus
from webapp.fleet.models import Worker, WorkerStatus
from webapp.notifications.models import Kind, NotificationRule
from webapp.replay.models import ReplayEntry, Verdict

NEWEST_TRAJECTORIES = 200
"""Of an experiment: more never run at once."""


@dataclass(frozen=True, slots=True)
class NotedEvent:
    """One thing to tell."""

    kind: Kind
    key: str
    title: str
    text: str
    path: str
    experiment_id: int | None = None


def events_for(rule: NotificationRule, since: datetime, now: datetime) -> list[NotedEvent]:
    """All that the rule asks for and that happened after `since`, or lasts."""
    kinds = [kind for kind in FINDERS if kind in rule.kinds]
    return [found for kind in kinds for found in FINDERS[kind](rule, since, now)]


def _experiments(rule: NotificationRule) -> QuerySet[Experiment]:
    return Experiment.objects.filter(team=rule.team_id, is_sample=False)


def _ended(status: ExperimentStatus, kind: Kind) -> Callable[..., Iterator[NotedEvent]]:
    def found(rule: NotificationRule, since: datetime, now: datetime) -> Iterator[NotedEvent]:
        for row in _experiments(rule).filter(status=status, ended_at__gte=since):
            verdict = described(row)
            text = f"{row.message} {verdict['text']}".strip() if verdict else row.message
            yield _of_experiment(kind, row, str(row.ended_at), f"{status.label}: {row}", text)

    return found


def _alarms(rule: NotificationRule, since: datetime, now: datetime) -> Iterator[NotedEvent]:
    rows = AlarmRecord.objects.filter(experiment__in=_experiments(rule), since_at__gte=since)
    for alarm in rows.select_related("experiment"):
        title = f"Alarm {alarm.name} at step {alarm.since_step}: {alarm.experiment}"
        text = f"{alarm.message} {alarm.remedy}"
        yield _of_experiment(Kind.ALARM, alarm.experiment, f"{alarm.name} {alarm.since_at}", title, text)


def _stalled(rule: NotificationRule, since: datetime, now: datetime) -> Iterator[NotedEvent]:
    for row in _experiments(rule).filter(status=ExperimentStatus.RUNNING):
        last = last_sign_of(row)
        if last and now - last >= timedelta(minutes=rule.stalled_minutes):
            minutes = int((now - last).total_seconds() // 60)
            text = f"No metric, and no trajectory began or ended, for {minutes} minutes (step {row.step})."
            yield _of_experiment(Kind.STALLED, row, str(last), f"Stalled: {row}", text)


def last_sign_of(experiment: Experiment) -> datetime | None:
    """When it last came further: a metric, the begin or the end of a trajectory, or its own start."""
    metric = experiment.metrics.order_by("-pk").values_list("at", flat=True).first()
    newest = experiment.trajectories.order_by("-pk").values("pk")[:NEWEST_TRAJECTORIES]
    rows = experiment.trajectories.filter(pk__in=newest).order_by()
    ends = rows.aggregate(began=Max("started_at"), ended=Max("ended_at"))
    attempt = experiment.attempts.aggregate(at=Max("started_at"))["at"]
    return max((at for at in (metric, ends["began"], ends["ended"], attempt) if at), default=None)


def _queue_empty(rule: NotificationRule, since: datetime, now: datetime) -> Iterator[NotedEvent]:
    last = _experiments(rule).filter(ended_at__gte=since).order_by("-ended_at").first()
    waits = _experiments(rule).exclude(status__in=[*FINAL_STATUSES, ExperimentStatus.PAUSED])
    if last and not waits.exists():
        text = f"The last one was {last}: {last.get_status_display()}."
        yield NotedEvent(
            kind=Kind.QUEUE_EMPTY,
            key=f"queue_empty {last.pk} {last.ended_at}",
            title="The queue is empty",
            text=text,
            path=reverse("queue-show"),
            experiment_id=last.pk,
        )


def _hosts_lost(rule: NotificationRule, since: datetime, now: datetime) -> Iterator[NotedEvent]:
    for worker in Worker.objects.filter(status=WorkerStatus.LOST, heartbeat_at__gte=since):
        yield NotedEvent(
            kind=Kind.HOST_LOST,
            key=f"host_lost {worker.pk} {worker.heartbeat_at}",
            title=f"Lost on {worker.host}: {worker.name}"[:200],
            text=f"Its last heartbeat came at {worker.heartbeat_at:%Y-%m-%d %H:%M:%S} UTC. What it held is "
            "run again elsewhere.",
            path=reverse("fleet-show"),
        )


def _inbox_waits(rule: NotificationRule, since: datetime, now: datetime) -> Iterator[NotedEvent]:
    """At most once a day: labelling the oldest entry must not tell of the next oldest."""
    before = now - timedelta(hours=rule.inbox_hours)
    rows = ReplayEntry.objects.filter(team=rule.team_id, verdict=Verdict.INBOX, created_at__lt=before)
    rows = rows.exclude(trajectory__experiment__is_sample=True)
    if oldest := rows.order_by("created_at").select_related("trajectory").first():
        yield NotedEvent(
            kind=Kind.INBOX_WAITS,
            key=f"inbox_waits {now:%Y-%m-%d}",
            title=f"{rows.count()} in the replay inbox wait for more than {rule.inbox_hours} h",
            text=f"The oldest came at {oldest.created_at:%Y-%m-%d %H:%M} UTC.",
            path=reverse("replay-inbox"),
            experiment_id=oldest.trajectory.experiment_id,
        )


def _of_experiment(kind: Kind, row: Experiment, when: str, title: str, text: str) -> NotedEvent:
    return NotedEvent(
        kind=kind,
        key=f"{kind} {row.pk} {when}",
        title=title[:200],
        text=text,
        path=reverse("experiment-detail", args=[row.pk]),
        experiment_id=row.pk,
    )


FINDERS: dict[Kind, Callable[[NotificationRule, datetime, datetime], Iterator[NotedEvent]]] = {
    Kind.FINISHED: _ended(ExperimentStatus.FINISHED, Kind.FINISHED),
    Kind.FAILED: _ended(ExperimentStatus.FAILED, Kind.FAILED),
    Kind.ALARM: _alarms,
    Kind.STALLED: _stalled,
    Kind.QUEUE_EMPTY: _queue_empty,
    Kind.HOST_LOST: _hosts_lost,
    Kind.INBOX_WAITS: _inbox_waits,
}
