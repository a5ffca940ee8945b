"""How far two judgements of the same things agree."""

from collections import Counter
from collections.abc import Sequence
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from training.statistics.share_interval import Z_95

Floats = NDArray[np.float64]


def cohens_kappa(pairs: Sequence[tuple[str, str]]) -> float | None:
    """Agreement of two people beyond chance, from what each said of the same entries.

    (observed - expected) / (1 - expected), expected from each person's own shares. None without entries, or
    when both always say the same one thing: then chance explains everything.
    """
    if not pairs:
        return None
    number = len(pairs)
    observed = sum(one == other for one, other in pairs) / number
    first, second = Counter(one for one, _ in pairs), Counter(other for _, other in pairs)
    expected = sum(first[name] * second[name] for name in first) / number**2
    return None if expected >= 1 else (observed - expected) / (1 - expected)


def kappa_interval(pairs: Sequence[tuple[str, str]]) -> tuple[float, float] | None:
    """The 95 % interval of `cohens_kappa`, for large samples (Fleiss, Cohen and Everitt 1969).

    None where there is no kappa, and where every pair is equal or none is: then its error is not estimated.
    """
    kappa = cohens_kappa(pairs)
    number = len(pairs)
    observed = sum(one == other for one, other in pairs) / number if number else 0.0
    if kappa is None or observed in (0.0, 1.0):
        return None
    first, second = Counter(one for one, _ in pairs), Counter(other for _, other in pairs)
    expected = sum(first[name] * second[name] for name in first) / number**2
    left = 1 - kappa
    same = other = 0.0
    for (one, two), num in Counter(pairs).items():
        if one == two:
            same += num / number * (1 - (first[one] + second[one]) / number * left) ** 2
        else:
            other += num / number * ((second[one] + first[two]) / number) ** 2
    variance = (same + left**2 * other - (kappa - expected * left) ** 2) / (number * (1 - expected) ** 2)
    reach = Z_95 * sqrt(max(0.0, variance))
    return max(-1.0, kappa - reach), min(1.0, kappa + reach)


def rank_correlation(left: Floats, right: Floats) -> float | None:
    """Spearman's: the correlation of ranks, ties sharing theirs; None where either side never changes."""
    if len(left) < 2 or np.ptp(left) == 0 or np.ptp(right) == 0:
        return None
    return float(np.corrcoef(_ranks(left), _ranks(right))[0, 1])


def _ranks(values: Floats) -> Floats:
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(count)
    return (last - (count - 1) / 2)[place]
