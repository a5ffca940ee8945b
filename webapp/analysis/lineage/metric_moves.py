"""Which metrics moved from one experiment to another, and whether that can be chance.

Held-out success: the paired test over the tasks that both were evaluated on. Series: Welch's test of the
difference of means over seeds; experiments whose configs differ in optimiser.seed alone are seeds of each
other. With fewer than two seeds on a side nothing is said of chance. The tests of a page are judged together.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from django.db.models import Avg, Q

from training.contracts.number_text import counted
from training.statistics.chance import false_discovery_bound, welch_test
from webapp.analysis.evaluations.success_pairs import SuccessPair, TaskOutcomes, change_between
from webapp.analysis.series.metric_series import LAST_SHARE
from webapp.experiments.models import Experiment, MetricPoint

FALSE_DISCOVERY_RATE = 0.05
"""Of what a page calls a finding, at most this share may be chance, on average."""
MAX_STEPS = 20
"""Newest steps of a series that its value is the mean of."""
SERIES = (
    "rollout/success",
    "rollout/reward_mean",
    "loss/entropy",
    "optimiser/grad_norm",
    "rollout/truncation_rate",
)
"""Those that say most about a run; the comparison shows all."""

Values = dict[int, dict[str, float]]
"""experiment id -> series -> its value at the end"""


@dataclass(slots=True, kw_only=True)
class Move:
    """A metric before and after."""

    name: str
    before: float
    after: float
    low: float | None
    """95 % interval of the difference; None when chance cannot be judged."""
    high: float | None
    p: float | None
    basis: str
    """What the test is over, e.g. "72 tasks" or "3 and 2 seeds"."""
    is_share: bool = False
    is_significant: bool = False
    differences: str = ""
    """Between what measured both, in words."""
    """By all tests of the page, see `judge`."""

    @property
    def difference(self) -> float:
        return self.after - self.before


def success_moves(before: SuccessPair, after: SuccessPair, outcomes: TaskOutcomes) -> list[Move]:
    """Greedy and sampled success on the tasks that both have, as far as they were stored."""
    moves = []
    change = change_between(before, after, outcomes)
    for kind, paired in change.parts:
        first, last = (getattr(pair, kind.lower()).by(outcomes.rule).value for pair in (before, after))
        moves.append(
            Move(
                name=f"{kind} held-out success",
                before=first,
                after=last,
                low=paired.low,
                high=paired.high,
                p=paired.p,
                basis=counted(paired.num_tasks, "task"),
                is_share=True,
                differences=", ".join(change.differences),
            )
        )
    return moves


def series_moves(before: Sequence[int], after: Sequence[int], values: Values) -> list[Move]:
    """Of every series that both sides have; those on a side are seeds of each other."""
    moves = []
    for name in SERIES:
        first, last = (
            [values[pk][name] for pk in side if name in values.get(pk, {})] for side in (before, after)
        )
        if not first or not last:
            continue
        test = welch_test(first, last)
        moves.append(
            Move(
                name=name,
                before=fmean(first),
                after=fmean(last),
                low=test.low if test else None,
                high=test.high if test else None,
                p=test.p if test else None,
                basis=f"{len(first)} and {len(last)} seeds" if test else "one seed: chance unknown",
                is_share=name in ("rollout/success", "rollout/truncation_rate"),
            )
        )
    return moves


def judge(moves: Sequence[Move]) -> int:
    """Mark those that are more than chance, all tests together; returns how many tests there were."""
    tests = [move.p for move in moves if move.p is not None]
    bound = false_discovery_bound(tests, FALSE_DISCOVERY_RATE)
    for move in moves:
        move.is_significant = move.p is not None and move.p <= bound
    return len(tests)


def final_values(experiments: Sequence[Experiment]) -> Values:
    """Mean of the newest steps of each series, at most a tenth of them; one query."""
    newest = Q(pk=None)
    for one in experiments:
        width = min(MAX_STEPS, max(1, round(LAST_SHARE * one.step)))
        newest |= Q(experiment_id=one.pk, step__gt=one.step - width)
    rows = MetricPoint.objects.filter(newest, name__in=SERIES).order_by()
    found: Values = defaultdict(dict)
    for row in rows.values("experiment_id", "name").annotate(mean=Avg("value")):
        if row["mean"] is not None and math.isfinite(row["mean"]):
            found[row["experiment_id"]][row["name"]] = row["mean"]
    return found


def seeds_of_each(flat: Mapping[int, Mapping[str, str]]) -> dict[int, list[int]]:
    """experiment id -> those whose configs are the same but for the seed, itself among them."""
    alike: dict[tuple[tuple[str, str], ...], list[int]] = defaultdict(list)
    for pk, config in flat.items():
        alike[tuple((name, text) for name, text in config.items() if name != "optimiser.seed")].append(pk)
    return {pk: group for group in alike.values() for pk in group}
