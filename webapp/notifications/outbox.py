"""Messages on their way: found, due, tried, delivered or given up.

    waiting -> delivered | failed;    failed, dropped -> waiting when a person asks

A message is tried by one process at a time: trying claims it by moving `next_at`. A process that dies in the
middle is followed by another, so a receiver may get a message twice, with the same id.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F, QuerySet
from django.utils import timezone

from webapp.dispatcher.child_work import BadEnd
from webapp.lib.transitions import sources_of
from webapp.live.event_publishing import publish
from webapp.notifications.happenings import happenings_for
from webapp.notifications.models import (
    DELIVERY_TRANSITIONS,
    Delivery,
    DeliveryStatus,
    NotificationRule,
)

LOOK_EVERY_S = 5.0
LOOK_BACK = timedelta(days=1)
"""What happened while no dispatcher ran; older things are no news."""
CLAIMED_FOR = timedelta(minutes=2)
"""Longer than any try."""
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
        return due(timezone.now()).values_list("pk", flat=True).first()


def note_news() -> int:
    """Queue a message for each rule and each thing that it asks for and was not told of. Returns how many."""
    now = timezone.now()
    rules = NotificationRule.objects.filter(is_on=True)
    return sum(_note_for(rule, now) for rule in rules)


def _note_for(rule: NotificationRule, now: datetime) -> int:
    found = {one.key: one for one in happenings_for(rule, max(rule.since, now - LOOK_BACK), now)}
    for key in rule.deliveries.filter(key__in=found).values_list("key", flat=True):
        del found[key]
    if not found:
        return 0
    told = rule.deliveries.filter(created_at__gt=now - timedelta(hours=1))
    room = MAX_PER_HOUR - told.exclude(status=DeliveryStatus.DROPPED).count()
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
            problem="" if number < room else f"More than {MAX_PER_HOUR} messages of this rule in an hour.",
        )
        for number, (key, one) in enumerate(found.items())
    ]
    with transaction.atomic():
        Delivery.objects.bulk_create(rows, ignore_conflicts=True)
        tell_pages(rule.team_id)
    return len(rows)


def due(now: datetime) -> QuerySet[Delivery]:
    """Messages to try now, new ones first: those of a receiver that fails must not hold up others."""
    rows = Delivery.objects.filter(status=DeliveryStatus.WAITING, next_at__lte=now, rule__is_on=True)
    return rows.order_by("num_tries", "pk")


def claim_next(without_rules: Collection[int] = ()) -> Delivery | None:
    """Take the next message, for this process alone; None when none is due."""
    while True:
        now = timezone.now()
        row = due(now).exclude(rule__in=without_rules).select_related("rule__team", "experiment").first()
        if row is None:
            return None
        mine = Delivery.objects.filter(pk=row.pk, status=DeliveryStatus.WAITING, next_at=row.next_at)
        if mine.update(num_tries=F("num_tries") + 1, next_at=now + CLAIMED_FOR, tried_at=now):
            row.num_tries += 1
            return row


def lose_delivery(pk: int, end: BadEnd) -> None:
    """The process that sent ended badly: what it had in hand is given up, or tried again later.

    `pk` is what it was started for; it sends the others, too.
    """
    waiting = Delivery.objects.filter(status=DeliveryStatus.WAITING)
    in_hand = waiting.filter(num_tries__gt=0, next_at=F("tried_at") + CLAIMED_FOR)
    for delivery in in_hand or waiting.filter(pk=pk):
        record_failure(delivery, end.why, is_permanent=not end.may_pass)


def record_delivered(delivery: Delivery) -> None:
    """The receiver has it."""
    _move(delivery, DeliveryStatus.DELIVERED, problem="")


def record_failure(
    delivery: Delivery, problem: str, *, is_permanent: bool = False, retry_after_s: float = 0.0
) -> None:
    """A try failed: another one follows later, or none."""
    if is_permanent or delivery.num_tries > len(PAUSES):
        _move(delivery, DeliveryStatus.FAILED, problem=problem[:300])
        return
    pause = max(PAUSES[max(0, delivery.num_tries - 1)], timedelta(seconds=min(retry_after_s, 7200.0)))
    with transaction.atomic():
        waiting = Delivery.objects.filter(pk=delivery.pk, status=DeliveryStatus.WAITING)
        waiting.update(problem=problem[:300], next_at=timezone.now() + pause)
        tell_pages(delivery.team_id)


def try_again(delivery: Delivery) -> bool:
    """A person asks for it; False for one that is waiting or delivered."""
    return _move(delivery, DeliveryStatus.WAITING, num_tries=0, next_at=timezone.now())


@transaction.atomic
def _move(delivery: Delivery, to: DeliveryStatus, **values: object) -> bool:
    allowed = sources_of(to, DELIVERY_TRANSITIONS)
    moved = Delivery.objects.filter(pk=delivery.pk, status__in=allowed).update(status=to, **values)
    if moved:
        tell_pages(delivery.team_id)
    return bool(moved)


def tell_pages(team_id: int) -> None:
    """Open logs of deliveries change; last in a transaction."""
    publish(f"notices.{team_id}", "notice.changed", {})


def forget_old_deliveries() -> Iterator[object]:
    """The dispatcher's chore."""
    old = Delivery.objects.filter(created_at__lt=timezone.now() - KEPT_FOR)
    while chunk := list(old.values_list("pk", flat=True)[:PRUNE_CHUNK]):
        yield Delivery.objects.filter(pk__in=chunk).delete()
