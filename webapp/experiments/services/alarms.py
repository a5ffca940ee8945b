"""Alarms of an experiment's guards: raised and cleared by the trainer, acknowledged by people."""

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import F
from django.utils import timezone

from training.contracts.trainer_reports import Alarm, StepAlarms
from webapp.experiments.models import ALARM_TRANSITIONS, AlarmRecord, AlarmStatus, Experiment
from webapp.experiments.queries.streams import experiment_stream
from webapp.lib.transitions import sources_of
from webapp.live.event_publishing import publish

QUIET_STEPS = 2
"""Steps in a row without it before an alarm is cleared: one good step is often luck."""


@transaction.atomic
def record_alarms(*, experiment_id: int, report: StepAlarms) -> None:
    """Raise what fired at a step; clear what has been quiet for a while."""
    for alarm in report.alarms:
        raise_alarm(experiment_id, alarm)
    names = [alarm.name for alarm in report.alarms]
    quiet = AlarmRecord.objects.filter(
        experiment_id=experiment_id,
        status__in=sources_of(AlarmStatus.CLEARED, ALARM_TRANSITIONS),
        step__lte=report.step - QUIET_STEPS,
    ).exclude(name__in=names)
    cleared = list(quiet.values_list("name", flat=True))
    if cleared:
        quiet.update(status=AlarmStatus.CLEARED, until_step=report.step, until_at=timezone.now())
        publish(experiment_stream(experiment_id), "alarm.cleared", {"names": cleared, "step": report.step})


def raise_alarm(experiment_id: int, alarm: Alarm) -> None:
    """Show a guard that fired. Repeats update the same row; one that was cleared begins anew."""
    rows = AlarmRecord.objects.filter(experiment_id=experiment_id, name=alarm.name)
    values = alarm.model_dump(exclude={"name"}) | {"at": timezone.now()}
    onset = {"since_step": alarm.step, "since_at": timezone.now()}
    rows.filter(status__in=sources_of(AlarmStatus.ACTIVE, ALARM_TRANSITIONS)).update(
        status=AlarmStatus.ACTIVE, until_step=None, until_at=None, acknowledged_by=None, **onset
    )
    if not rows.update(**values, num_times=F("num_times") + 1):
        AlarmRecord.objects.create(experiment_id=experiment_id, name=alarm.name, **values, **onset)
    event = {"name": alarm.name, "step": alarm.step, "message": alarm.message}
    publish(experiment_stream(experiment_id), "alarm.raised", event)


@transaction.atomic
def acknowledge_alarm(*, experiment: Experiment, name: str, user: User) -> bool:
    """It stops shouting until it was cleared and fires again; False when it is not active."""
    changed = experiment.alarms.filter(
        name=name, status__in=sources_of(AlarmStatus.ACKNOWLEDGED, ALARM_TRANSITIONS)
    ).update(status=AlarmStatus.ACKNOWLEDGED, acknowledged_by=user)
    if changed:
        publish(experiment_stream(experiment.pk), "alarm.acknowledged", {"name": name})
    return bool(changed)
