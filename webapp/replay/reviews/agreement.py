"""How far people agree: Cohen's kappa, agreement, speed and checks of each. Complete items alone count."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations
from statistics import mean, median

from django.db.models import Exists, OuterRef

from training.statistics.agreement import cohens_kappa
from webapp.replay.models import USABLE_VERDICTS, ReviewItem, ReviewLabel, ReviewRound

MAX_SHOWN = 100
PAUSE_S = 1800
"""Longer than this a person did something else: such times do not count for speed."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two people over the entries that both labelled."""

    one: str
    other: str
    num: int
    agreement: float
    kappa: float | None


@dataclass(frozen=True, slots=True)
class Person:
    name: str
    num_done: int
    num_open: int
    agreement: float | None
    """Share of equal verdicts over all others' labels of the same complete entries."""
    median_s: float | None
    """From seeing an entry to its label."""
    num_checks: int
    num_passed: int
    """Checks that were called usable, or not, as they are."""


@dataclass(frozen=True, slots=True)
class Agreement:
    pairs: list[Pair]
    people: list[Person]
    kappa: float | None
    """Mean over pairs, weighted by their entries."""
    num_complete: int
    num_agreed: int
    num_items: int


def agreement_of(review: ReviewRound) -> Agreement:
    """Two queries."""
    items = {item.pk: item for item in review.items.all()}
    labels: dict[int, list[ReviewLabel]] = defaultdict(list)
    rows = ReviewLabel.objects.filter(item__round=review).select_related("person").order_by("item_id", "id")
    for label in rows:
        labels[label.item_id].append(label)
    complete = {pk: labels[pk] for pk, item in items.items() if item.num_open == 0}
    pairs = _pairs(complete.values())
    known = [pair for pair in pairs if pair.kappa is not None]
    weight = sum(pair.num for pair in known)
    return Agreement(
        pairs=pairs,
        people=_people([label for found in labels.values() for label in found], complete, items),
        kappa=sum((pair.kappa or 0.0) * pair.num for pair in known) / weight if weight else None,
        num_complete=len(complete),
        num_agreed=sum(len({label.verdict for label in found}) == 1 for found in complete.values()),
        num_items=len(items),
    )


def _pairs(complete: Iterable[list[ReviewLabel]]) -> list[Pair]:
    said: dict[tuple[str, str], list[tuple[str, str]]] = defaultdict(list)
    for labels in complete:
        ordered = sorted(labels, key=lambda label: label.person.get_username())
        for one, other in combinations(ordered, 2):
            names = (one.person.get_username(), other.person.get_username())
            said[names].append((one.verdict, other.verdict))
    return [
        Pair(*names, len(pairs), mean(one == other for one, other in pairs), cohens_kappa(pairs))
        for names, pairs in sorted(said.items())
    ]


def _people(
    labels: list[ReviewLabel], complete: dict[int, list[ReviewLabel]], items: dict[int, ReviewItem]
) -> list[Person]:
    by_name: dict[str, list[ReviewLabel]] = defaultdict(list)
    for label in labels:
        by_name[label.person.get_username()].append(label)
    return [_person(name, found, complete, items) for name, found in sorted(by_name.items())]


def _person(
    name: str, mine: list[ReviewLabel], complete: dict[int, list[ReviewLabel]], items: dict[int, ReviewItem]
) -> Person:
    done = [label for label in mine if label.verdict]
    same = [
        other.verdict == label.verdict
        for label in done
        for other in complete.get(label.item_id, [])
        if other.person_id != label.person_id
    ]
    spent = [
        seconds
        for label in done
        if label.opened_at and label.done_at
        if (seconds := (label.done_at - label.opened_at).total_seconds()) <= PAUSE_S
    ]
    checks = [label for label in done if items[label.item_id].expected]
    passed = [
        (label.verdict in USABLE_VERDICTS) == (items[label.item_id].expected in USABLE_VERDICTS)
        for label in checks
    ]
    return Person(
        name=name,
        num_done=len(done),
        num_open=len(mine) - len(done),
        agreement=mean(same) if same else None,
        median_s=median(spent) if spent else None,
        num_checks=len(checks),
        num_passed=sum(passed),
    )


def settled_by_people(review: ReviewRound) -> list[ReviewItem]:
    """Disagreements that a person settled, each with `by_party`: whether that person had labelled it."""
    rows = review.items.exclude(decided_by=None).select_related("entry__trajectory__task", "decided_by")
    party = ReviewLabel.objects.filter(item=OuterRef("pk"), person=OuterRef("decided_by"))
    return list(rows.annotate(by_party=Exists(party)).order_by("-id")[:MAX_SHOWN])


def disagreements(review: ReviewRound) -> list[ReviewItem]:
    """Complete items without a decision, with what each person said; never an item that is still blind."""
    rows = review.items.filter(num_open=0, decided="", expected="")
    rows = rows.select_related("entry__trajectory__task").prefetch_related("labels__person")
    return list(rows.order_by("id")[:MAX_SHOWN])
