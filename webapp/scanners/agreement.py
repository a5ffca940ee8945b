"""How far scanners say what people said: verdicts of replay entries, and marks of turns.

A problem is a rejected entry, or a trajectory with a turn that people called bad or first wrong. Unclear
answers and labels of programs do not count.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Count

from training.statistics.agreement import cohens_kappa, kappa_interval
from webapp.replay.models import ProcessLabel, Verdict
from webapp.replay.turn_ratings import bad_turns
from webapp.scanners.models import Finding, Outcome

PROBLEM, FINE = "problem", "fine"
OF_VERDICTS: dict[str, str] = {Verdict.REJECTED: PROBLEM, Verdict.ACCEPTED: FINE, Verdict.GOLD: FINE}
OF_OUTCOMES: dict[str, str] = {Outcome.FOUND: PROBLEM, Outcome.CLEAR: FINE}
Pairs = list[tuple[str, str]]
"""(what the scanner says, what people say)"""


@dataclass(frozen=True, slots=True)
class Agreed:
    """A scanner against one kind of label."""

    num: int
    num_equal: int
    num_both: int
    """Both call it a problem."""
    num_scanner: int
    num_people: int
    kappa: float | None
    interval: tuple[float, float] | None
    """95 %."""

    @classmethod
    def of(cls, pairs: Sequence[tuple[str, str]]) -> Agreed:
        return cls(
            num=len(pairs),
            num_equal=sum(one == other for one, other in pairs),
            num_both=sum(one == other == PROBLEM for one, other in pairs),
            num_scanner=sum(one == PROBLEM for one, _ in pairs),
            num_people=sum(other == PROBLEM for _, other in pairs),
            kappa=cohens_kappa(pairs),
            interval=kappa_interval(pairs),
        )


def with_verdicts(scanners: Sequence[int]) -> dict[int, Agreed]:
    """Scanner -> against verdicts that people gave; one query for all."""
    rows = Finding.objects.filter(
        scanner__in=scanners,
        outcome__in=list(OF_OUTCOMES),
        trajectory__replay_entries__verdict__in=list(OF_VERDICTS),
        trajectory__replay_entries__labelled_by__isnull=False,
    ).order_by()
    columns = ("scanner_id", "outcome", "trajectory__replay_entries__verdict")
    pairs: dict[int, Pairs] = defaultdict(list)
    for scanner, outcome, verdict, num in rows.values_list(*columns).annotate(num=Count("id", distinct=True)):
        pairs[scanner] += [(OF_OUTCOMES[outcome], OF_VERDICTS[verdict])] * num
    return {scanner: Agreed.of(pairs[scanner]) for scanner in scanners}


@dataclass(frozen=True, slots=True)
class WithMarks:
    """A scanner against marks of turns."""

    agreed: Agreed
    num_placed: int
    """Findings that name a turn, in trajectories with a bad turn."""
    num_same_turn: int
    """Of these, those that name a bad one."""


def with_marks(scanner: int) -> WithMarks:
    """Against ratings that people gave here; two queries."""
    labels: dict[int, list[ProcessLabel]] = defaultdict(list)
    rows = ProcessLabel.objects.filter(origin="", trajectory__findings__scanner=scanner)
    for label in rows.defer("updated_at"):
        labels[label.trajectory_id].append(label)
    bad = {pk: bad_turns(mine) for pk, mine in labels.items() if any(map(_says_something, mine))}
    pairs: Pairs = []
    placed = same = 0
    findings = Finding.objects.filter(scanner=scanner, trajectory__in=bad, outcome__in=list(OF_OUTCOMES))
    for pk, outcome, turn in findings.values_list("trajectory_id", "outcome", "turn"):
        pairs.append((OF_OUTCOMES[outcome], PROBLEM if bad[pk] else FINE))
        if outcome == Outcome.FOUND and turn is not None and bad[pk]:
            placed += 1
            same += turn in bad[pk]
    return WithMarks(Agreed.of(pairs), placed, same)


def _says_something(label: ProcessLabel) -> bool:
    return bool(label.ratings) or label.first_wrong is not None
