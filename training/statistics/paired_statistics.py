"""What changed between two evaluations of the same tasks, and whether that can be chance.

p: exact sign test over the tasks that changed; with one sample per task that is McNemar's exact test
(McNemar 1947). Interval: 95 % percentile bootstrap over tasks (Efron & Tibshirani 1993, ch. 13), from the
exact distribution of the resampled mean instead of random resamples: its probabilities are the coefficients
of (sum over tasks of x^difference / n)^n, computed in whole numbers by J. C. P. Miller's recurrence
(Knuth, The Art of Computer Programming 2, 4.7).
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from scipy import special

MAX_DENOMINATOR = 6
"""Differences of tasks are whole multiples of one over this or less; finer ones are rounded to it."""

Outcome = Sequence[int]
"""(solved, samples, ...) of a task"""


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
    """95 % bootstrap interval of the difference."""
    p: float
    """Of the exact two-sided test that tasks are as often fixed as regressed."""


def paired_change(before: Mapping[str, Outcome], after: Mapping[str, Outcome]) -> PairedChange | None:
    """None without a common task."""
    pairs = Counter((*outcome[:2], *after[name][:2]) for name, outcome in before.items() if name in after)
    if not pairs:
        return None
    differences: Counter[Fraction] = Counter()
    for (won, samples, won_after, samples_after), count in pairs.items():
        differences[Fraction(won_after, samples_after) - Fraction(won, samples)] += count
    fixed = sum(count for difference, count in differences.items() if difference > 0)
    regressed = sum(count for difference, count in differences.items() if difference < 0)
    number = differences.total()
    low, high = bootstrap_interval(differences)
    return PairedChange(
        num_tasks=number,
        fixed=fixed,
        regressed=regressed,
        difference=float(sum(difference * count for difference, count in differences.items()) / number),
        low=low,
        high=high,
        p=sign_test(fixed, regressed),
    )


def sign_test(fixed: int, regressed: int) -> float:
    """Two-sided p of a fair coin that falls at least as unevenly; 1 when nothing changed."""
    return min(1.0, float(2 * special.bdtr(min(fixed, regressed), fixed + regressed, 0.5)))


def bootstrap_interval(differences: Counter[Fraction]) -> tuple[float, float]:
    """2.5 % and 97.5 % quantiles of the mean of tasks that are drawn again with replacement.

    `differences` are those of the tasks, each with the number of tasks that have it.
    """
    grid = min(math.lcm(*(one.denominator for one in differences)), MAX_DENOMINATOR)
    counts: Counter[int] = Counter()
    for difference, count in differences.items():
        counts[round(difference * grid)] += count
    low, high = _quantiles(tuple(sorted(counts.items())))
    scale = grid * differences.total()
    return low / scale, high / scale


@lru_cache(maxsize=512)
def _quantiles(counts: tuple[tuple[int, int], ...]) -> tuple[int, int]:
    """Of the sum of as many draws as there are differences; `counts` are (difference, tasks)."""
    number, least = sum(count for _, count in counts), counts[0][0]
    total = number**number
    ends, reached = [], 0
    limits = [total * 25, total * 975]
    for place, ways in enumerate(_ways(counts)):
        reached += ways
        while limits and reached * 1000 >= limits[0]:
            ends.append(place + least * number)
            limits.pop(0)
        if not limits:
            break
    return ends[0], ends[1]


def _ways(counts: tuple[tuple[int, int], ...]) -> Iterator[int]:
    """Ways to get each sum, from the smallest possible one on."""
    number, (least, base) = sum(count for _, count in counts), counts[0]
    steps = [(difference - least, count) for difference, count in counts[1:]]
    ways = [base**number]
    yield ways[0]
    for place in range(1, number * (steps[-1][0] if steps else 0) + 1):
        found = sum(
            (step * (number + 1) - place) * count * ways[place - step]
            for step, count in steps
            if step <= place
        )
        ways.append(found // (place * base))
        yield ways[-1]
