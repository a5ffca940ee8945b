"""Whether differences can be chance: Welch's test of two means, and many tests judged together.

Many tests: Benjamini and Hochberg, "Controlling the false discovery rate", JRSS B 57 (1995).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, variance

from training.statistics.student_t import t_975, t_p


@dataclass(frozen=True, slots=True)
class WelchTest:
    """Of mean(after) - mean(before)."""

    low: float
    high: float
    """95 % interval of the difference."""
    p: float
    """Two-sided: how often chance alone makes a difference as large."""


def welch_test(before: Sequence[float], after: Sequence[float]) -> WelchTest | None:
    """Welch 1947; None with fewer than two values on a side."""
    if min(len(before), len(after)) < 2:
        return None
    parts = [variance(side) / len(side) for side in (before, after)]
    difference, spread = fmean(after) - fmean(before), sum(parts)
    if not spread:
        return WelchTest(difference, difference, float(difference == 0))
    below = sum(part**2 / (len(side) - 1) for part, side in zip(parts, (before, after), strict=True))
    degrees = spread**2 / below
    half = t_975(degrees) * math.sqrt(spread)
    return WelchTest(difference - half, difference + half, t_p(difference / math.sqrt(spread), degrees))


def false_discovery_bound(p_values: Sequence[float], rate: float) -> float:
    """Largest p that is a finding when at most `rate` of all findings may be false; -1 when none is."""
    ordered = sorted(p_values)
    number = len(ordered)
    found = [p for rank, p in enumerate(ordered, start=1) if p <= rate * rank / number]
    return found[-1] if found else -1.0
