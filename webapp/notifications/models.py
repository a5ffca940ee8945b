"""Rules and the messages that they caused."""

import secrets
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.db import models
from django.db.models import Q, QuerySet
from django.utils import timezone

from webapp.accounts.models import Team
from webapp.experiments.models import Experiment
from webapp.lib.columns.stored_fields import ReportedCharField, ReportedJSONField, ReportedTextField
from webapp.lib.long_work import LongWork
from webapp.live.event_publishing import publish
from webapp.notifications.channels.contract import Channel
from webapp.notifications.channels.registry import CHANNELS, channel_choices
from webapp.notifications.channels.targets import MAX_TARGET


class Kind(models.TextChoices):
    """What can be reported."""

    FINISHED = "finished", "An experiment finished"
    FAILED = "failed", "An experiment failed"
    ALARM = "alarm", "An alarm was raised"
    STALLED = "stalled", "A running experiment stalled"
    QUEUE_EMPTY = "queue_empty", "The team's queue is empty"
    HOST_LOST = "host_lost", "A worker of the fleet was lost"
    INBOX_WAITS = "inbox_waits", "Entries wait in the replay inbox"
    TEST = "test", "A test"


RULE_KINDS = tuple(kind for kind in Kind if kind is not Kind.TEST)
DEFAULT_STALLED_MINUTES = 30
DEFAULT_INBOX_HOURS = 24


class NotificationRule(models.Model):
    """Which event goes where, for one team."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="notification_rules")
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL)
    channel = models.CharField(max_length=8, choices=channel_choices)
    kinds = ReportedJSONField(default=list)
    """Of `RULE_KINDS`."""
    target = models.CharField(max_length=MAX_TARGET, blank=True)
    """A URL, which may be a secret by itself and is never shown again; addresses of e-mail with commas."""
    secret = models.CharField(max_length=64, blank=True)
    """Name of a secret that the team was granted: the webhook's key, or what stands for {secret} in a URL."""
    has_pictures = models.BooleanField(default=True)
    stalled_minutes = models.PositiveIntegerField(default=DEFAULT_STALLED_MINUTES)
    inbox_hours = models.PositiveIntegerField(default=DEFAULT_INBOX_HOURS)
    site_url = models.CharField(max_length=300)
    """How its author reached this installation, for links: https://desk.example.org"""
    is_on = models.BooleanField(default=True)
    since = models.DateTimeField(default=timezone.now)
    """What happened before is not reported."""

    def __str__(self) -> str:
        return f"{self.get_channel_display()} {self.shown_target}".rstrip()

    @property
    def channel_row(self) -> Channel:
        return CHANNELS[self.channel]

    @property
    def shown_target(self) -> str:
        """Where it tells it, without what only its author knows."""
        parts = urlsplit(self.target) if self.channel_row.is_url else None
        return f"{parts.scheme}://{parts.netloc}/…" if parts else self.target

    @property
    def reported_kinds(self) -> list[Kind]:
        return [Kind(kind) for kind in self.kinds]


class DeliveryStatus(models.TextChoices):
    WAITING = "waiting", "Waiting"
    SENDING = "sending", "Sending"
    DELIVERED = "delivered", "Delivered"
    FAILED = "failed", "Failed"
    """Given up after the last try, or for a reason that no repetition changes."""
    DROPPED = "dropped", "Dropped"
    """Never tried: the rule had sent enough in that hour."""


DELIVERY_TRANSITIONS: dict[DeliveryStatus, set[DeliveryStatus]] = {
    DeliveryStatus.WAITING: {DeliveryStatus.WAITING, DeliveryStatus.SENDING, DeliveryStatus.FAILED},
    DeliveryStatus.SENDING: {DeliveryStatus.DELIVERED, DeliveryStatus.FAILED, DeliveryStatus.WAITING},
    DeliveryStatus.DELIVERED: set(),
    DeliveryStatus.FAILED: {DeliveryStatus.WAITING},
    DeliveryStatus.DROPPED: {DeliveryStatus.WAITING},
}


def _nonce() -> str:
    return secrets.token_urlsafe(12)


class Delivery(LongWork):
    """One message by one rule, and how sending it went."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="+")
    rule = models.ForeignKey(NotificationRule, on_delete=models.CASCADE, related_name="deliveries")
    kind = models.CharField(max_length=12, choices=Kind)
    key = models.CharField(max_length=200)
    """What happened; a rule tells it once."""
    title = ReportedCharField(max_length=200)
    text = ReportedTextField(blank=True)
    path = ReportedCharField(max_length=200)
    """Of the page that shows it."""
    experiment = models.ForeignKey(Experiment, null=True, on_delete=models.SET_NULL, related_name="+")
    frames = ReportedJSONField(default=list)
    """sha256 of the screenshots of its strip, chosen at the first try."""
    nonce = models.CharField(max_length=24, default=_nonce)
    status = models.CharField(max_length=9, choices=DeliveryStatus, default=DeliveryStatus.WAITING)
    num_tries = models.IntegerField(default=0)
    next_at = models.DateTimeField(default=timezone.now)
    """Of a waiting one: not before."""

    TRANSITIONS = DELIVERY_TRANSITIONS
    BEGINS = {DeliveryStatus.WAITING: DeliveryStatus.SENDING}
    AFTER_LOSS = {DeliveryStatus.SENDING: DeliveryStatus.WAITING}
    SILENT_AFTER = timedelta(minutes=2)
    """Longer than any try."""

    class Meta:
        verbose_name_plural = "deliveries"
        constraints = [models.UniqueConstraint(fields=["rule", "key"], name="told_once")]
        indexes = [
            models.Index(
                fields=["next_at"], condition=models.Q(status=DeliveryStatus.WAITING), name="delivery_due"
            ),
            models.Index(fields=["team", "-id"], name="delivery_newest"),
        ]

    def __str__(self) -> str:
        return self.title

    def publish(self) -> None:
        publish(f"notices.{self.team_id}", "notice.changed", {})

    def values_at_start(self) -> dict[str, Any]:
        return {"num_tries": self.num_tries + 1}

    @classmethod
    def claimable(cls) -> QuerySet["Delivery"]:
        """Due now, new ones first: those of a receiver that fails must not hold up others."""
        is_due = ~Q(status=DeliveryStatus.WAITING) | Q(next_at__lte=timezone.now(), rule__is_on=True)
        return super().claimable().filter(is_due).order_by("num_tries", "pk")
