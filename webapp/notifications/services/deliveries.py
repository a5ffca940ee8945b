"""Messages on their way: found, due, tried, delivered or given up.

    waiting -> sending -> delivered | failed | waiting;    failed, dropped -> waiting when a person asks

A message is tried by one process at a time. One that dies in the middle is followed by another, so a receiver
may get a message twice, with the same id.
"""

import time
from collections.abc import Collection, Iterator
from datetime import datetime, timedelta

from django.db import transaction
from django.utils import timezone

from webapp.lib.long_work import BadEnd
from webapp.live.event_publishing import publish
from webapp.notifications.models import Delivery, DeliveryStatus, NotificationRule
from webapp.notifications.queries.events import events_for
from webapp.trajectories.pictures.strips import screens_across

LOOK_EVERY_S = 5.0
NUM_FRAMES = 4
"""Of the strip that goes with a message."""
LOOK_BACK = timedelta(days=1)
"""What happened while no dispatcher ran; older things are no news."""
PAUSES = tuple(timedelta(seconds=seconds) for seconds in (10, 60, 300, 1800, 7200))
"""After the first try, the second, ...; after the last one it is given up."""
MAX_PER_HOUR = 60
"""Of one rule: a broken sweep must not fill a mailbox."""
KEPT_FOR = timedelta(days=30)
PRUNE_CHUNK = 1000


class Lookout:
    """What the dispatcher asks twice a second; it looks for news every `LOOK_EVERY_S`."""

    def __init__(self) -> None:
        self._not_before = 0.0

    def next_delivery(self) -> int | None:
        """A message that is due."""
        if time.monotonic() < self._not_before:
            return None
        self._not_before = time.monotonic() + LOOK_EVERY_S
        note_news()
        return Delivery.next_waiting()


def note_news() -> int:
    """Queue a message for each rule and each event of it that was not reported yet. Returns how many."""
    now = timezone.now()
    rules = NotificationRule.objects.filter(is_on=True)
    return sum(_note_for(rule, now) for rule in rules)


def _note_for(rule: NotificationRule, now: datetime) -> int:
    found = {one.key: one for one in events_for(rule, max(rule.since, now - LOOK_BACK), now)}
    for key in rule.deliveries.filter(key__in=found).values_list("key", flat=True):
        del found[key]
    if not found:
        return 0
    sent_lately = rule.deliveries.filter(created_at__gt=now - timedelta(hours=1))
    room = MAX_PER_HOUR - sent_lately.exclude(status=DeliveryStatus.DROPPED).count()
    rows = [
        Delivery(
            team_id=rule.team_id,
            rule=rule,
            kind=one.kind,
            key=key,
            title=one.title,
            text=one.text,
            path=one.path,
            experiment_id=one.experiment_id,
            status=DeliveryStatus.WAITING if number < room else DeliveryStatus.DROPPED,
            message="" if number < room else f"More than {MAX_PER_HOUR} messages of this rule in an hour.",
        )
        for number, (key, one) in enumerate(found.items())
    ]
    with transaction.atomic():
        Delivery.objects.bulk_create(rows, ignore_conflicts=True)
        publish_changed(rule.team_id)
    return len(rows)


def claim_next(without_rules: Collection[int]) -> Delivery | None:
    """Take the next message, for this process alone; None when none is due."""
    due = Delivery.claimable().exclude(rule__in=without_rules).values_list("pk", flat=True)
    while (pk := due.first()) is not None:
        if (delivery := Delivery.take(pk)) is not None:
            return delivery
    return None


def lose_delivery(pk: int, end: BadEnd) -> None:
    """The process that sent ended badly: what it had in hand is given up, or tried again later.

    `pk` is what it was started for; it sends the others, too.
    """
    in_hand = Delivery.objects.filter(status=DeliveryStatus.SENDING)
    for delivery in in_hand or Delivery.objects.filter(pk=pk, status=DeliveryStatus.WAITING):
        record_failure(delivery, end.why, is_permanent=not end.may_pass)


def record_delivered(delivery: Delivery) -> None:
    delivery.end(DeliveryStatus.DELIVERED)


def record_failure(
    delivery: Delivery, problem: str, *, is_permanent: bool = False, retry_after_s: float = 0.0
) -> None:
    """A try failed: another one follows later, or none."""
    if is_permanent or delivery.num_tries > len(PAUSES):
        delivery.fail(problem[:300])
        return
    pause = max(PAUSES[max(0, delivery.num_tries - 1)], timedelta(seconds=min(retry_after_s, 7200.0)))
    next_at = timezone.now() + pause
    delivery.move(DeliveryStatus.WAITING, message=problem[:300], next_at=next_at, heartbeat_at=None)


def try_again(delivery: Delivery) -> bool:
    """A person asks for it; False for one that is waiting or delivered."""
    has_ended = delivery.status in (DeliveryStatus.FAILED, DeliveryStatus.DROPPED)
    return has_ended and delivery.move(
        DeliveryStatus.WAITING, num_tries=0, num_lost=0, next_at=timezone.now(), ended_at=None
    )


def publish_changed(team_id: int) -> None:
    """Open logs of deliveries change; last in a transaction."""
    publish(f"notices.{team_id}", "notice.changed", {})


def forget_old_deliveries() -> Iterator[object]:
    """The dispatcher's upkeep."""
    old = Delivery.objects.filter(created_at__lt=timezone.now() - KEPT_FOR)
    while chunk := list(old.values_list("pk", flat=True)[:PRUNE_CHUNK]):
        yield Delivery.objects.filter(pk__in=chunk).delete()


def choose_frames(delivery: Delivery) -> None:
    """At the first try: the newest trajectory of its experiment, from its first screen to its last."""
    if delivery.frames or not delivery.rule.has_pictures or delivery.experiment is None:
        return
    newest = delivery.experiment.trajectories.exclude(last_frame="").order_by("-pk").first()
    if newest is None:
        return
    delivery.frames = screens_across(newest, NUM_FRAMES)
    Delivery.objects.filter(pk=delivery.pk).update(frames=delivery.frames)
