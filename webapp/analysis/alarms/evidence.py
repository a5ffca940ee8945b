"""The trajectories or groups that tell most about an alarm, from the steps in which it began."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.db.models import F, FloatField, Q, QuerySet
from django.db.models.functions import Abs, Cast

from training.contracts.outcome import SOLVED_SCORE
from training.contracts.types import Purpose, TrajectoryStatus
from webapp.analysis.groups.group_cards import group_cards
from webapp.experiments.models import AlarmRecord
from webapp.experiments.queries.outcomes import solved_at_limit

MOST_TELLING = 20
ONSET_STEPS = 5
"""Later steps show what an alarm has led to, not what it came from."""

Rows = QuerySet[Any]
"""Trajectories."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What to look at first; either trajectories or groups."""

    title: str
    first_step: int
    last_step: int
    trajectories: tuple[Any, ...] = ()
    groups: tuple[dict[str, Any], ...] = ()
    """Cards of `group_cards`."""


def _most_parse_errors(rows: Rows) -> Rows:
    return rows.filter(num_parse_errors__gt=0).order_by(
        (F("num_parse_errors") / Cast(F("num_turns") + 1, FloatField())).desc(), "-num_parse_errors", "id"
    )


def _truncated(rows: Rows) -> Rows:
    return rows.filter(status=TrajectoryStatus.TRUNCATED).order_by("-num_turns", "id")


def _endless(rows: Rows) -> Rows:
    return _truncated(rows).filter(solved_at_limit())


def _nearest_to_success(rows: Rows) -> Rows:
    return rows.filter(score__lt=SOLVED_SCORE).order_by("-reward", "id")


def _largest_gaps(rows: Rows) -> Rows:
    return rows.filter(logprob_gap__isnull=False).order_by("-logprob_gap", "id")


def _largest_advantages(rows: Rows) -> Rows:
    return rows.filter(advantage__isnull=False).order_by(Abs("advantage").desc(), "-num_turns", "id")


def _errored(rows: Rows) -> Rows:
    return rows.filter(status=TrajectoryStatus.ERRORED).order_by("id")


def _without_advantage(rows: Rows) -> Rows:
    return rows.filter(Q(score__isnull=False), advantage=None).order_by("id")


TRAJECTORIES: dict[str, tuple[str, Callable[[Rows], Rows]]] = {
    "parse_collapse": ("Trajectories with the largest share of unparsable turns", _most_parse_errors),
    "truncation": ("The longest of the truncated trajectories", _truncated),
    "endless_successes": ("The longest that solved their task and went on", _endless),
    "all_zero_rewards": ("Trajectories that came nearest to success", _nearest_to_success),
    "logprob_gap": ("Trajectories on which engine and trainer differ most", _largest_gaps),
    "logprob_drift": ("Trajectories on which engine and trainer differ most", _largest_gaps),
    "grad_norm_explosion": ("Trajectories with the largest advantages", _largest_advantages),
    "errored_trajectories": ("Errored trajectories", _errored),
    "untrainable_trajectories": ("Scored trajectories that were not trained on", _without_advantage),
}
GROUPS = {
    "no_update": "Groups whose members were all rewarded alike",
    "settled": "Groups whose members were all rewarded alike",
    "zero_variance": "Groups whose members were all rewarded alike",
    "saturated_term": "Groups with the most equal rewards",
    "entropy_collapse": "Groups with the most equal rewards",
}


def evidence_of(alarm: AlarmRecord) -> Evidence | None:
    """The MOST_TELLING of the first steps in which it fired; None for a guard that looks at none."""
    first, last = alarm.since_step, min(alarm.step, alarm.since_step + ONSET_STEPS - 1)
    place: dict[str, Any] = {"first_step": first, "last_step": last}
    at_onset = {"step__gte": first, "step__lte": last, "purpose": Purpose.TRAIN}
    if alarm.name in TRAJECTORIES:
        title, telling = TRAJECTORIES[alarm.name]
        rows = telling(alarm.experiment.trajectories.filter(**at_onset)).select_related("task")
        found = tuple(rows.defer("task__spec", "terms", "checks")[:MOST_TELLING])
        return Evidence(title=title, trajectories=found, **place)
    if alarm.name in GROUPS:
        groups = alarm.experiment.groups.filter(**at_onset, is_cancelled=False)
        if alarm.name in ("zero_variance", "no_update", "settled"):
            groups = groups.without_variance()
        telling_groups = groups.filter(num_scored__gt=1).order_by("reward_std", "-num_scored", "id")
        cards = group_cards(telling_groups[:MOST_TELLING], alarm.experiment.settings.algorithm)
        return Evidence(title=GROUPS[alarm.name], groups=tuple(cards), **place)
    return None


def parse_problems(evidence: Evidence) -> dict[int, str]:
    """Trajectory id -> what was wrong with its first unparsable completion; one query."""
    ids = [row.pk for row in evidence.trajectories if row.num_parse_errors]
    if not ids:
        return {}
    turns = evidence.trajectories[0].turns.model.objects.filter(trajectory__in=ids).exclude(parse_error="")
    rows = turns.order_by("-index").values_list("trajectory_id", "parse_error")
    return dict(rows)
