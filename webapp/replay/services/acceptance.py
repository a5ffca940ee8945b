"""The rule that empties a team's inbox: what it accepts, what it rejects, and when it has to stop.

It decides once over each entry that no person has touched. A sample of what it would accept stays in the
inbox and looks like any other entry there; how many of those people reject is the rule's error rate.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from zlib import crc32

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Count, Q

from training.contracts.number_text import share_text
from training.contracts.types import Source, TrajectoryStatus
from training.statistics.share_interval import wilson_interval
from webapp.accounts.models import AuditAction, Team
from webapp.accounts.services.audit_log import log_action
from webapp.replay.models import AcceptanceRule, ReplayEntry, RuleSample, Verdict
from webapp.replay.queries.rules import flagged_entries
from webapp.replay.services.bulk_labels import MAX_BULK, label_many
from webapp.replay.services.clusters import DUPLICATE_TAG, surplus_of

BY_RULE_TAG = "by-rule"
PIECE = 400
"""Entries that it decides over within one piece of the dispatcher's upkeep."""
MIN_JUDGED = 10
"""Labels of people before a rule can be stopped for its errors."""


@dataclass(frozen=True, slots=True)
class Audit:
    """What people said of the sample."""

    num_sampled: int
    num_judged: int
    num_wrong: int

    @property
    def rate(self) -> float | None:
        return self.num_wrong / self.num_judged if self.num_judged else None

    @property
    def low(self) -> float:
        return wilson_interval(self.num_wrong, self.num_judged)[0]

    @property
    def high(self) -> float:
        return wilson_interval(self.num_wrong, self.num_judged)[1]


@dataclass(frozen=True, slots=True)
class Applied:
    """What a rule did."""

    accepted: int = 0
    rejected: int = 0
    sampled: int = 0

    @property
    def number(self) -> int:
        return self.accepted + self.rejected + self.sampled


def audit_of(rule: AcceptanceRule) -> Audit:
    """Of the sample that it has left so far."""
    judged = ~Q(entry__verdict=Verdict.INBOX)
    found = rule.samples.aggregate(
        sampled=Count("pk"),
        judged=Count("pk", filter=judged),
        wrong=Count("pk", filter=Q(entry__verdict=Verdict.REJECTED)),
    )
    return Audit(found["sampled"], found["judged"], found["wrong"])


@transaction.atomic
def set_rule(*, team: Team, user: User, **values: Any) -> AcceptanceRule:
    """Another rule begins with a sample of its own."""
    AcceptanceRule.objects.filter(team=team).delete()
    log_action(AuditAction.RULE_CHANGED, person=user, team=team, kind="acceptance", **values)
    return AcceptanceRule.objects.create(team=team, owner=user, **values)


def stop_rule(*, rule: AcceptanceRule, why: str) -> None:
    """It decides over nothing any more; what it decided stays."""
    AcceptanceRule.objects.filter(pk=rule.pk).update(stopped=why)
    rule.stopped = why


def apply_rules() -> Iterator[int]:
    """All that decide, one after another; yields how many entries each settled. One process does it."""
    for rule in AcceptanceRule.objects.filter(stopped="").select_related("team", "owner"):
        while settled := apply_rule(rule, at_most=PIECE).number:
            yield settled


def apply_rule(rule: AcceptanceRule, *, at_most: int = MAX_BULK) -> Applied:
    """Decide over some new entries, or stop."""
    audit = audit_of(rule)
    if audit.num_judged >= MIN_JUDGED and (audit.rate or 0.0) > rule.max_error:
        said = f"People rejected {audit.num_wrong} of {audit.num_judged} of its sample"
        stop_rule(rule=rule, why=f"{said}: more than {share_text(rule.max_error)}.")
        return Applied()
    flagged = flagged_entries(rule.team, tuple(rule.without))
    around = ReplayEntry.objects.filter(team=rule.team, cluster__isnull=False).exclude(pk__in=flagged)
    around = around.exclude(verdict=Verdict.REJECTED)
    fresh = around.filter(
        verdict=Verdict.INBOX,
        has_bad_turns=False,
        rule_sample=None,
        label_events=None,
        review_items=None,
        trajectory__source=Source.POLICY,
        trajectory__status=TrajectoryStatus.TERMINATED,  # what a limit ended would teach never to stop
        trajectory__score__gte=rule.min_score,
    )
    waiting = set(fresh.order_by("pk").values_list("pk", flat=True)[:at_most])
    if not waiting:
        return Applied()
    surplus = waiting.intersection(surplus_of(around, rule.keep))
    sample = {pk for pk in waiting - surplus if _is_sampled(rule, pk)}
    RuleSample.objects.bulk_create(RuleSample(rule=rule, entry_id=pk) for pk in sorted(sample))
    good, same = (ReplayEntry.objects.filter(pk__in=found) for found in (waiting - surplus - sample, surplus))
    accepted = label_many(entries=good, user=rule.owner, verdict=Verdict.ACCEPTED, add_tag=BY_RULE_TAG)
    rejected = label_many(entries=same, user=rule.owner, verdict=Verdict.REJECTED, add_tag=DUPLICATE_TAG)
    return Applied(accepted.changed, rejected.changed, len(sample))


def _is_sampled(rule: AcceptanceRule, pk: int) -> bool:
    """By chance, and the same however often it is asked."""
    return crc32(f"{rule.pk}:{pk}".encode()) < rule.audit_share * 2**32
