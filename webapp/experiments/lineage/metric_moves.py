"""Which metrics moved from one experiment to another, and whether that can be chance.

Held-out success: McNemar's test over the tasks that both were evaluated on. Series: Welch's 95 % interval of
the difference of means over seeds (Welch 1947); experiments whose configs differ in optimiser.seed alone are
seeds of each other. With fewer than two seeds on a side nothing is said of chance.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, variance

from django.db.models import Avg, Q

from webapp.experiments.evaluations.success_pairs import SuccessPair, TaskOutcomes, change_between
from webapp.experiments.models import Experiment, MetricPoint
from webapp.experiments.sweeps.results import LAST_SHARE, t_975

SIGNIFICANT = 0.05
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A metric before and after."""

    name: str
    before: float
    after: float
    low: float | None
    """95 % interval of the difference; None when chance cannot be judged."""
    high: float | None
    basis: str
    """What the interval is over, e.g. "72 tasks, p = 0.02" or "3 and 2 seeds"."""
    is_share: bool = False

    @property
    def difference(self) -> float:
        return self.after - self.before

    @property
    def is_significant(self) -> bool:
        return self.low is not None and self.high is not None and not self.low <= 0 <= self.high


def success_moves(before: SuccessPair, after: SuccessPair, outcomes: TaskOutcomes) -> list[Move]:
    """Greedy and sampled success on the tasks that both have, as far as they were stored."""
    moves = []
    for kind, paired in change_between(before, after, outcomes).parts:
        first, last = (getattr(pair, kind.lower()).success for pair in (before, after))
        # McNemar's exact test decides; an interval that touches 0 by rounding must not contradict it.
        is_sure = paired.p < SIGNIFICANT
        low, high = (paired.low, paired.high) if is_sure else (min(paired.low, 0.0), max(paired.high, 0.0))
        basis = f"{paired.num_tasks} tasks, {'p < 0.001' if paired.p < 0.001 else f'p = {paired.p:.2g}'}"
        name = f"{kind} held-out success"
        moves.append(
            Move(name=name, before=first, after=last, low=low, high=high, basis=basis, is_share=True)
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
        interval = welch_interval(first, last)
        moves.append(
            Move(
                name=name,
                before=fmean(first),
                after=fmean(last),
                low=interval[0] if interval else None,
                high=interval[1] if interval else None,
                basis=f"{len(first)} and {len(last)} seeds" if interval else "one seed: chance unknown",
                is_share=name in ("rollout/success", "rollout/truncation_rate"),
            )
        )
    return moves


def welch_interval(before: Sequence[float], after: Sequence[float]) -> tuple[float, float] | None:
    """95 % interval of mean(after) - mean(before); None with fewer than two values on a side."""
    if min(len(before), len(after)) < 2:
        return None
    parts = [variance(side) / len(side) for side in (before, after)]
    difference, spread = fmean(after) - fmean(before), sum(parts)
    if not spread:
        return difference, difference
    below = sum(part**2 / (len(side) - 1) for part, side in zip(parts, (before, after), strict=True))
    half = t_975(int(spread**2 / below)) * math.sqrt(spread)
    return difference - half, difference + half


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
