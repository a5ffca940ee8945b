"""Rules of a team, an experiment that fails, and the sending that the dispatcher would do."""

from datetime import timedelta

from django.core.management import call_command
from django.utils import timezone

from testing.factories import make_experiment, make_trajectory
from training.outgoing.secret_grants import add_grant
from webapp.experiments.models import ExperimentStatus
from webapp.notifications.models import Delivery, Kind, NotificationRule
from webapp.notifications.services import deliveries, rules

SITE = "http://testserver"


def grant(settings, name: str, value: str, *urls: str) -> None:
    path = settings.SECRETS_DIR / name
    path.touch(mode=0o600)
    path.write_text(value)
    add_grant(settings.SECRETS_DIR, secret=name, team="home", urls=urls)


def rule_of(admin, channel: str, target: str = "", **values) -> NotificationRule:
    team = admin.memberships.get().team
    wish = rules.NewRule(channel=channel, target=target, kinds=[Kind.FAILED], **values)
    return rules.add_rule(team=team, by=admin, site_url=SITE, wish=wish)


def fail_one(admin, name: str = "grip <two> & more|x"):
    """An experiment with five screens that has failed."""
    experiment = make_experiment(team=admin.memberships.get().team, owner=admin, name=name)
    make_trajectory(experiment=experiment, turns=5)
    experiment.status, experiment.ended_at = ExperimentStatus.FAILED, timezone.now()
    experiment.message = "CUDA ran out of memory."
    experiment.save()
    return experiment


def deliver() -> None:
    """What the dispatcher does, in this process."""
    deliveries.note_news()
    if (pk := Delivery.next_waiting()) is not None:
        call_command("run_work", "notification", str(pk))


def due_now(delivery: Delivery) -> timedelta:
    """Make it due; how long it had to wait."""
    delivery.refresh_from_db()
    Delivery.objects.filter(pk=delivery.pk).update(next_at=timezone.now())
    return delivery.next_at - timezone.now()
