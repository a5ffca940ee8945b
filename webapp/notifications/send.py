"""Sends what is due, one try at each message."""

import logging
from collections.abc import Iterator

from webapp.notifications.channels.contract import NotDelivered
from webapp.notifications.message import message_of
from webapp.notifications.models import Delivery
from webapp.notifications.services import deliveries

log = logging.getLogger(__name__)


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
