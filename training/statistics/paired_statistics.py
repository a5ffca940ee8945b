"""What changed between two evaluations of the same tasks, and whether that can be chance.

One test serves p and interval, so that p < 0.05 exactly where the 95 % interval excludes 0: Fisher's
randomisation test (The Design of Experiments, 1935, 21). Without a change, each task's difference may as
well have the other sign; with one sample per task that is McNemar's exact test (1947). The interval holds
every x that the test does not refuse as the mean. Its ends are quantiles of the mean of a random subset of
the tasks: flipped about x, they sum to 0 or less as often as such a mean is at most x (Hartigan, "Using
subsample values as typical values", JASA 64, 1969).
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from scipy import special

TAIL = 0.025
"""On either side of the interval."""
MAX_CELLS = 1 << 22
"""Of sizes and sums of subsets: some 1400 tasks of one sample, 500 of eight."""
COARSEST = 50
"""Differences that are finer than `MAX_CELLS` allows are rounded to one over this or less; where that is
too many cells as well, the sum is taken as normal."""

SIGNIFICANT_P = 2 * TAIL
"""A change at a p above this may be chance, and is not shown as a gain or a loss."""

Outcome = Sequence[int]
"""(solved, samples, ...) of a task"""
Counts = tuple[tuple[int, int], ...]
"""(difference, tasks that have it), from the least difference on."""


@dataclass(frozen=True, slots=True)
class PairedChange:
    """From one evaluation to another, over the tasks that both have."""

    num_tasks: int
    fixed: int
    """Tasks with a higher share of solved samples than before."""
    regressed: int
    difference: float
    """Of the mean share, in [-1, 1]."""
    low: float
    high: float
    """95 % interval of the difference: all of [-1, 1] of fewer than six tasks."""
    p: float
    """Two-sided: how often differences of random signs have a sum as far from 0."""


def paired_change(before: Mapping[str, Outcome], after: Mapping[str, Outcome]) -> PairedChange | None:
    """None without a common task."""
    pairs = Counter((*outcome[:2], *after[name][:2]) for name, outcome in before.items() if name in after)
    if not pairs:
        return None
    differences: Counter[Fraction] = Counter()
    for (won, samples, won_after, samples_after), count in pairs.items():
        differences[Fraction(won_after, samples_after) - Fraction(won, samples)] += count
    number = differences.total()
    low, high, p = randomisation_test(differences)
    return PairedChange(
        num_tasks=number,
        fixed=sum(count for difference, count in differences.items() if difference > 0),
        regressed=sum(count for difference, count in differences.items() if difference < 0),
        difference=float(sum(difference * count for difference, count in differences.items()) / number),
        low=low,
        high=high,
        p=p,
    )


def direction(difference: float, p: float) -> int:
    """1 for a rise, -1 for a fall, 0 for what chance can do."""
    return 0 if p > SIGNIFICANT_P else (difference > 0) - (difference < 0)


def randomisation_test(differences: Counter[Fraction]) -> tuple[float, float, float]:
    """Ends of the 95 % interval of the mean, and the p of a mean of 0; tasks by their difference."""
    exact = math.lcm(*(one.denominator for one in differences))
    finest = MAX_CELLS // (2 * differences.total() ** 2)
    is_large = finest < min(exact, COARSEST)
    grid = exact if is_large else min(exact, finest)
    counts: Counter[int] = Counter()
    for difference, count in differences.items():
        counts[round(difference * grid)] += count
    rows = tuple(sorted(counts.items()))
    low, high, p = _by_normal(rows) if is_large else _by_subsets(rows)
    return max(low / grid, -1.0), min(high / grid, 1.0), min(p, 1.0)


@lru_cache(maxsize=512)
def _by_subsets(counts: Counts) -> tuple[float, float, float]:
    """Exact."""
    chances = _subsets(counts)
    sizes, places = np.nonzero(chances)
    weights, sums = chances[sizes, places], places + sizes * counts[0][0]
    means = sums / np.maximum(sizes, 1)

    def least(values: np.ndarray) -> float:
        values = np.where(sizes == 0, -np.inf, values)  # the empty subset flips every task, about any mean
        order = np.argsort(values)
        return float(values[order][np.searchsorted(np.cumsum(weights[order]), TAIL)])

    p = 2 * min(weights[sums <= 0].sum(), weights[sums >= 0].sum())
    return least(means), 0.0 - least(-means), round(float(p), 12)  # 0.125 reads otherwise than a bit more


def _subsets(counts: Counts) -> np.ndarray:
    """Chance of each size and sum of a random subset; a sum counts from size times the least difference."""
    number, first = sum(count for _, count in counts), counts[0][0]
    chances = np.zeros((number + 1, number * (counts[-1][0] - first) + 1))
    chances[0, 0], size, reach = 1.0, 1, 1
    for difference, count in sorted(counts, key=lambda row: row[1]):
        step, taken = difference - first, np.arange(count + 1)
        log_ways = -np.log(count + 1) - special.betaln(count - taken + 1, taken + 1)
        made = np.zeros_like(chances)
        for some, chance in enumerate(np.exp(log_ways - count * math.log(2))):
            made[some : some + size, step * some : step * some + reach] += chance * chances[:size, :reach]
        chances, size, reach = made, size + count, reach + step * count
    return chances


def _by_normal(counts: Counts) -> tuple[float, float, float]:
    """The same with a normal distribution in place of that of the flipped sum."""
    number = sum(count for _, count in counts)
    mean = sum(value * count for value, count in counts) / number
    squares = sum(value**2 * count for value, count in counts)
    z = float(special.ndtri(1 - TAIL))
    half = z * math.sqrt((squares / number - mean**2) / (number - z**2))
    return mean - half, mean + half, float(2 * special.ndtr(-abs(mean) * number / math.sqrt(squares)))
