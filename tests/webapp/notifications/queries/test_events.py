"""Each kind of happening is found once, and nothing that is no news."""

from datetime import timedelta

import pytest
from django.utils import timezone

from testing.factories import make_experiment, make_replay_entry, make_team, make_trajectory, make_user
from testing.fleet_rows import make_worker
from webapp.experiments.models import AlarmRecord, ExperimentStatus
from webapp.fleet.models import Worker, WorkerStatus
from webapp.notifications.models import RULE_KINDS, Delivery, NotificationRule
from webapp.notifications.services import deliveries, rules
from webapp.replay.models import ReplayEntry

pytestmark = pytest.mark.django_db


@pytest.fixture
def rule() -> NotificationRule:
    admin = make_user("admin", team=make_team("home"))
    team = admin.memberships.get().team
    wish = rules.NewRule(channel="browser", kinds=list(RULE_KINDS))
    return rules.add_rule(team=team, by=admin, site_url="http://x", wish=wish)


def ended(rule, status, **values):
    return make_experiment(team=rule.team, status=status, ended_at=timezone.now(), **values)


def alarm(rule):
    experiment = make_experiment(team=rule.team)
    AlarmRecord.objects.create(
        experiment=experiment, name="entropy", severity="critical", step=4, since_step=4, value=1, limit=2,
        message="Entropy fell.", remedy="Raise it.",
    )  # fmt: skip


def stalled(rule):
    experiment = make_experiment(team=rule.team, step=7)
    old = timezone.now() - timedelta(minutes=31)
    make_trajectory(experiment=experiment, started_at=old, ended_at=old)


def lost(rule):
    worker = make_worker("gpu1@far", host="far", queue="gpu")
    Worker.objects.filter(pk=worker.pk).update(status=WorkerStatus.LOST, heartbeat_at=timezone.now())


def waits(rule):
    for hours in (30, 26, 2):
        entry = make_replay_entry(team=rule.team)
        ReplayEntry.objects.filter(pk=entry.pk).update(created_at=timezone.now() - timedelta(hours=hours))


CASES = {
    "finished": (lambda rule: ended(rule, ExperimentStatus.FINISHED), "Finished: #"),
    "failed": (lambda rule: ended(rule, ExperimentStatus.FAILED), "Failed: #"),
    "alarm": (alarm, "Alarm entropy at step 4: #"),
    "stalled": (stalled, "Stalled: #"),
    "queue_empty": (lambda rule: ended(rule, ExperimentStatus.CANCELLED), "The queue is empty"),
    "host_lost": (lost, "Lost on far: gpu1@far"),
    "inbox_waits": (waits, "2 in the replay inbox wait for more than 24 h"),
}


@pytest.mark.parametrize("kind", CASES)
def test_it_is_told_once(rule, kind):
    happen, title = CASES[kind]
    happen(rule)
    assert deliveries.note_news() >= 1
    assert deliveries.note_news() == 0
    assert Delivery.objects.get(kind=kind).title.startswith(title)


def test_nothing_is_told_of_samples_other_teams_and_earlier_days(rule):
    ended(rule, ExperimentStatus.FAILED, is_sample=True)
    make_experiment(status=ExperimentStatus.FAILED, ended_at=timezone.now())
    old = make_experiment(team=rule.team, status=ExperimentStatus.FAILED)
    type(old).objects.filter(pk=old.pk).update(ended_at=timezone.now() - timedelta(hours=1))
    moving = make_experiment(team=rule.team)
    make_trajectory(experiment=moving)
    make_replay_entry(team=rule.team)
    assert deliveries.note_news() == 0


def test_one_that_moved_on_and_stalled_again_is_told_again(rule):
    stalled(rule)
    assert deliveries.note_news() == 1
    (experiment,) = rule.team.experiments.all()
    old = timezone.now() - timedelta(minutes=30, seconds=5)
    make_trajectory(experiment=experiment, started_at=old, ended_at=old)
    assert deliveries.note_news() == 1


def test_old_messages_are_forgotten(rule):
    ended(rule, ExperimentStatus.FINISHED)
    deliveries.note_news()
    Delivery.objects.filter(kind="finished").update(created_at=timezone.now() - deliveries.KEPT_FOR)
    for _ in deliveries.forget_old_deliveries():
        pass
    assert set(Delivery.objects.values_list("kind", flat=True)) == {"queue_empty"}
