"""Sends what is due, one try at each message."""

import logging
from collections.abc import Iterator

from django.urls import reverse

from webapp.notifications.channels.contract import Message, NotDelivered
from webapp.notifications.models import Delivery
from webapp.notifications.screenshot_strip_links import picture_of, token_of
from webapp.notifications.services import deliveries

log = logging.getLogger(__name__)


def message_of(delivery: Delivery) -> Message:
    """The message of a delivery whose rule and team are loaded."""
    site, picture = delivery.rule.site_url, picture_of(delivery.frames)
    where = reverse("notification-picture", args=[token_of(delivery)]) if picture else ""
    return Message(
        id=f"deskhand-{delivery.pk}-{delivery.nonce}",
        kind=delivery.kind,
        title=delivery.title,
        text=delivery.text,
        url=site + delivery.path,
        team_id=delivery.team_id,
        team=delivery.rule.team.name,
        experiment_id=delivery.experiment_id,
        at=delivery.created_at,
        picture=picture,
        picture_url=site + where if where else "",
    )


def send(delivery: Delivery) -> bool:
    """Send a message that this process has claimed, and record how it went; True when it arrived."""
    deliveries.choose_frames(delivery)
    try:
        delivery.rule.channel_row.send(delivery.rule, message_of(delivery))
    except NotDelivered as error:
        log.warning("notification %s by rule %s: %s", delivery.pk, delivery.rule_id, error)
        deliveries.record_failure(
            delivery, str(error), is_permanent=error.is_permanent, retry_after_s=error.retry_after_s
        )
        return False
    deliveries.record_delivered(delivery)
    return True


def send_due(first: Delivery) -> Iterator[object]:
    """Send it and every other message that is due; those of a rule that fails wait for the next process."""
    failing: set[int] = set()
    delivery: Delivery | None = first
    while delivery is not None:
        if not send(delivery):
            failing.add(delivery.rule_id)
        yield delivery
        delivery = deliveries.claim_next(without_rules=failing)
