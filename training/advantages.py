"""Advantages relative to the group, by group id and with real members only.

    A_i = (R_i - mean_g) / (std_g + 1e-6)      with scale, unbiased std over the scored members
    A_i =  R_i - mean_g                         without scale (Dr. GRPO)

Source: GRPO, DeepSeekMath (arXiv 2402.03300) eq. 4; unbiased std and epsilon as in slime.
Errored and cancelled members are not there: an error is never a reward. A group with fewer
than two scored members has no baseline; it is dropped and counted. A group whose rewards
are all equal (std < 1e-6) has zero advantages; whether it stays is the caller's decision.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

EPSILON = 1e-6
"""Added to the standard deviation; also the bound below which a group has zero variance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupAdvantages:
    """The advantages of one group.

    Example: rewards {1: 1.0, 2: 0.0} give advantages {1: 0.707, 2: -0.707}.
    """

    advantages: dict[int, float]
    """trajectory_id -> advantage."""
    mean: float
    std: float
    """Unbiased, over the scored members."""
    has_zero_variance: bool


def group_advantages(rewards: Mapping[int, float], *, scale: bool) -> GroupAdvantages | None:
    """Advantages of the scored members {trajectory_id: reward}; None when there are fewer than two."""
    if len(rewards) < 2:
        return None
    mean, std = mean_and_std(list(rewards.values()))
    flat = std < EPSILON
    divisor = std + EPSILON if scale else 1.0
    advantages = {key: 0.0 if flat else (reward - mean) / divisor for key, reward in rewards.items()}
    return GroupAdvantages(advantages=advantages, mean=mean, std=std, has_zero_variance=flat)


def mean_and_std(values: Sequence[float]) -> tuple[float, float]:
    """Mean and unbiased standard deviation; (nan, 0) for none, std 0 for one value."""
    if not values:
        return math.nan, 0.0
    mean = math.fsum(values) / len(values)
    if len(values) < 2:
        return mean, 0.0
    return mean, math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))
