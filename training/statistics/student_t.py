"""Student's t, so that an interval and its p value are of one distribution.

`scipy.special` and not `scipy.stats`: the same functions, loaded in a quarter of the time and a third of the
memory.
"""

import math
from collections.abc import Sequence
from statistics import fmean, stdev

from scipy import special


def t_p(t: float, degrees: float) -> float:
    """Two-sided p of a t."""
    return float(2 * special.stdtr(degrees, -abs(t)))


def t_975(degrees: float) -> float:
    """Half width of a 95 % interval in standard errors: the t whose `t_p` is 0.05."""
    return float(special.stdtrit(degrees, 0.975))


def mean_interval(values: Sequence[float]) -> tuple[float, float]:
    """95 % interval of the mean that at least two values are drawn around."""
    half = t_975(len(values) - 1) * stdev(values) / math.sqrt(len(values))
    return fmean(values) - half, fmean(values) + half
