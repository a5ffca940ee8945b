"""Changes of a team's rules, each with its row in the audit log."""

import secrets
from dataclasses import asdict, dataclass

from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction
from django.urls import reverse
from django.utils import timezone

from webapp.accounts.models import AuditAction, Team
from webapp.accounts.services.audit_log import log_action
from webapp.lib.request_values import BadValue
from webapp.notifications.channels.registry import CHANNELS
from webapp.notifications.models import (
    DEFAULT_INBOX_HOURS,
    DEFAULT_STALLED_MINUTES,
    RULE_KINDS,
    Delivery,
    Kind,
    NotificationRule,
)
from webapp.notifications.services.deliveries import publish_changed, try_again

MAX_RULES = 50
"""Of a team: the dispatcher looks through all of them every few seconds."""
MAX_MINUTES = 7 * 24 * 60
MAX_HOURS = 90 * 24


@dataclass(frozen=True, kw_only=True)
class NewRule:
    """What a person asks for; the columns of the rule."""

    channel: str
    kinds: list[str]
    target: str = ""
    secret: str = ""
    has_pictures: bool = True
    stalled_minutes: int = DEFAULT_STALLED_MINUTES
    inbox_hours: int = DEFAULT_INBOX_HOURS


@transaction.atomic
def add_rule(*, team: Team, by: AbstractBaseUser, site_url: str, wish: NewRule) -> NotificationRule:
    """Tell of its kinds from now on. Raises BadValue naming the field."""
    if wish.channel not in CHANNELS:
        raise BadValue("channel", f"one of {', '.join(CHANNELS)}")
    if not wish.kinds or any(kind not in RULE_KINDS for kind in wish.kinds):
        raise BadValue("kinds", f"some of {', '.join(RULE_KINDS)}")
    if team.notification_rules.count() >= MAX_RULES:
        raise BadValue("", f"{team} has {MAX_RULES} rules; delete one of them")
    target, secret = wish.target.strip(), wish.secret.strip()
    CHANNELS[wish.channel].check(team, target, secret)
    kinds = [kind for kind in RULE_KINDS if kind in wish.kinds]
    columns = asdict(wish) | {"kinds": kinds, "target": target, "secret": secret}
    rule = NotificationRule.objects.create(
        team=team, owner_id=by.pk, site_url=site_url.rstrip("/"), **columns
    )
    _log(rule, by, "added")
    return rule


@transaction.atomic
def switch_rule(*, rule: NotificationRule, is_on: bool, by: AbstractBaseUser) -> None:
    """Off: it reports nothing, and what waits is kept. On: what happened meanwhile is not reported."""
    if rule.is_on == is_on:
        return
    rule.is_on = is_on
    rule.since = timezone.now() if is_on else rule.since
    rule.save(update_fields=["is_on", "since"])
    _log(rule, by, "switched on" if is_on else "switched off")


@transaction.atomic
def delete_rule(*, rule: NotificationRule, by: AbstractBaseUser) -> None:
    """It goes with its log."""
    _log(rule, by, "deleted")
    rule.delete()


@transaction.atomic
def send_test(*, rule: NotificationRule, by: AbstractBaseUser) -> Delivery:
    """Queue a message that says that it is a test, with screenshots of the team's newest experiment."""
    newest = rule.team.experiments.order_by("-pk").first()
    delivery = Delivery.objects.create(
        team_id=rule.team_id,
        rule=rule,
        kind=Kind.TEST,
        key=f"test {secrets.token_hex(8)}",
        title=f"A test from {rule.team}",
        text=f"{by.get_username()} asked for it. The rule tells of: {', '.join(rule.kinds)}.",
        path=reverse("notification-list"),
        experiment=newest,
    )
    _log(rule, by, "tested")
    publish_changed(rule.team_id)
    return delivery


@transaction.atomic
def retry(*, delivery: Delivery, by: AbstractBaseUser) -> bool:
    """Try a message again that was given up or dropped; False for others."""
    if not try_again(delivery):
        return False
    _log(delivery.rule, by, f"tried again: {delivery.title}")
    return True


def _log(rule: NotificationRule, by: AbstractBaseUser, what: str) -> None:
    log_action(
        AuditAction.NOTICES_CHANGED, person=by, team=rule.team_id, kind="rule", object_id=rule.pk,
        what=what, to=str(rule), kinds=rule.kinds,
    )  # fmt: skip
