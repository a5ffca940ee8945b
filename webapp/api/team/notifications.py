"""/notifications: what the current team is notified about, where, and how sending it went."""

from datetime import datetime
from typing import Any

from ninja import Field, Router, Schema, Status

from webapp.accounts.access import MemberRequest, member, owned_row
from webapp.accounts.models import Role
from webapp.api.errors import Conflict
from webapp.api.paging import Page, page_of
from webapp.notifications.channels.registry import ChannelName
from webapp.notifications.models import (
    DEFAULT_INBOX_HOURS,
    DEFAULT_STALLED_MINUTES,
    Delivery,
    DeliveryStatus,
    Kind,
    NotificationRule,
)
from webapp.notifications.services import rules

router = Router(tags=["notifications"])


class NotificationRuleIn(Schema):
    """Which event goes where."""

    channel: ChannelName
    kinds: list[Kind] = Field(min_length=1, max_length=len(Kind))
    """All but "test"."""
    target: str = Field("", max_length=1000)
    """A URL, in which {secret} stands for the secret; or addresses of e-mail with commas."""
    secret: str = Field("", max_length=64)
    """Name of a secret that the team was granted for the URL."""
    has_pictures: bool = True
    stalled_minutes: int = Field(DEFAULT_STALLED_MINUTES, ge=1, le=rules.MAX_MINUTES)
    inbox_hours: int = Field(DEFAULT_INBOX_HOURS, ge=0, le=rules.MAX_HOURS)


class NotificationRuleOut(Schema):
    """A rule, without the path of its URL."""

    id: int
    channel: ChannelName
    kinds: list[Kind]
    target: str = Field(alias="shown_target")
    secret: str
    has_pictures: bool
    stalled_minutes: int
    inbox_hours: int
    is_on: bool
    since: datetime


class SwitchIn(Schema):
    """Off or on."""

    is_on: bool


class NotificationOut(Schema):
    """A message, and how sending it went."""

    id: int
    rule: int = Field(alias="rule_id")
    kind: Kind
    title: str
    text: str
    path: str
    experiment: int | None = Field(alias="experiment_id")
    status: DeliveryStatus
    num_tries: int
    problem: str = Field(alias="message")
    created_at: datetime
    next_at: datetime
    """Of a waiting one: not before."""


class NotificationPage(Page[NotificationOut]):
    """Newest first; `next` is the `after` of the next page."""


@router.get("/rules", response=list[NotificationRuleOut], operation_id="list_notification_rules")
def list_rules(request: MemberRequest) -> Any:
    """The current team's rules."""
    return list(member(request).team.notification_rules.order_by("pk"))


@router.post("/rules", response={201: NotificationRuleOut}, operation_id="add_notification_rule")
def add_rule(request: MemberRequest, body: NotificationRuleIn) -> Any:
    """Report these from now on."""
    team = member(request, Role.ADMIN).team
    site, wish = request.build_absolute_uri("/"), rules.NewRule(**body.model_dump())
    return Status(201, rules.add_rule(team=team, by=request.user, site_url=site, wish=wish))


@router.post("/rules/{int:pk}/test", response={201: NotificationOut}, operation_id="test_notification_rule")
def test_rule(request: MemberRequest, pk: int) -> Any:
    """Queue a test message; `list_notifications` says how it went."""
    return Status(201, rules.send_test(rule=_rule(request, pk), by=request.user))


@router.patch("/rules/{int:pk}", response=NotificationRuleOut, operation_id="switch_notification_rule")
def switch_rule(request: MemberRequest, pk: int, body: SwitchIn) -> Any:
    """Turn a rule off or on."""
    rule = _rule(request, pk)
    rules.switch_rule(rule=rule, is_on=body.is_on, by=request.user)
    return rule


@router.delete("/rules/{int:pk}", response={204: None}, operation_id="delete_notification_rule")
def delete_rule(request: MemberRequest, pk: int) -> Any:
    """It goes with its log."""
    rules.delete_rule(rule=_rule(request, pk), by=request.user)
    return Status(204, None)


@router.get("", response=NotificationPage, operation_id="list_notifications")
def list_notifications(
    request: MemberRequest, status: DeliveryStatus | None = None, after: str = "", limit: int = 50
) -> Any:
    """What the current team's rules sent in the last 30 days."""
    rows = Delivery.objects.filter(team=member(request).team_id)
    return page_of(rows.filter(status=status) if status else rows, after, limit)


@router.post("/{int:pk}/retry", response=NotificationOut, operation_id="retry_notification")
def retry(request: MemberRequest, pk: int) -> Any:
    """Try a message again that was given up or dropped."""
    delivery = owned_row(request, Delivery, pk, Role.ADMIN, "team", "rule")
    if not rules.retry(delivery=delivery, by=request.user):
        raise Conflict("It waits or was delivered already.")
    delivery.refresh_from_db()
    return delivery


def _rule(request: MemberRequest, pk: int) -> NotificationRule:
    return owned_row(request, NotificationRule, pk, Role.ADMIN, "team")
