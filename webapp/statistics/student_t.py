"""Student's t, so that an interval and its p value are of one distribution.

Source: Abramowitz & Stegun, Handbook of Mathematical Functions, 26.7.3 and 26.7.4.
"""

from __future__ import annotations

import math
from functools import lru_cache

LARGEST = 12.8
"""Above the 97.5 % quantile of one degree of freedom, 12.7062."""


def t_p(t: float, degrees: int) -> float:
    """Two-sided p of a t with a whole number of degrees of freedom."""
    angle = math.atan(abs(t) / math.sqrt(degrees))
    cosine, sine = math.cos(angle), math.sin(angle)
    is_odd = degrees % 2
    term = total = cosine if is_odd else 1.0
    for number in range(2 + is_odd, degrees - 1, 2):
        term *= cosine**2 * (number - 1) / number
        total += term
    if not is_odd:
        return max(0.0, 1 - sine * total)
    inside = angle + sine * total if degrees > 1 else angle
    return max(0.0, 1 - 2 / math.pi * inside)


@lru_cache(maxsize=1024)
def t_975(degrees: int) -> float:
    """Half width of a 95 % interval in standard errors: the t whose `t_p` is 0.05, by bisection."""
    low, high = 0.0, LARGEST
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if t_p(middle, degrees) > 0.05 else (low, middle)
    return high
