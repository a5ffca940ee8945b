"""Held-out success with its uncertainty, and the checkpoint that did best."""

from __future__ import annotations

import math
from collections.abc import Sequence

from training.contracts.trainer_reports import EvaluationResult
from training.contracts.types import Group

Z_95 = 1.959964
SUCCESS_SCORE = 1.0
"""A trajectory succeeded when its task score reaches this (up to rounding)."""


def wilson_interval(num_success: int, num_trials: int) -> tuple[float, float]:
    """95 % Wilson score interval of a proportion; (0, 1) without trials."""
    if num_trials == 0:
        return 0.0, 1.0
    share, z2 = num_success / num_trials, Z_95**2
    centre = (share + z2 / (2 * num_trials)) / (1 + z2 / num_trials)
    half = (
        Z_95 / (1 + z2 / num_trials) * math.sqrt(share * (1 - share) / num_trials + z2 / (4 * num_trials**2))
    )
    return max(0.0, centre - half), min(1.0, centre + half)


def succeeded(score: float | None) -> bool:
    """True for a full task score."""
    return score is not None and score >= SUCCESS_SCORE - 1e-9


def evaluate_groups(
    groups: Sequence[Group], *, name: str, step: int, policy_version: int, split: str = "heldout"
) -> EvaluationResult:
    """Success over the scored members; errored ones are not tasks that were failed, they are missing."""
    per_family: dict[str, tuple[int, int]] = {}
    for group in groups:
        for member in group.scored():
            wins, total = per_family.get(group.task.family, (0, 0))
            per_family[group.task.family] = (wins + succeeded(member.score), total + 1)
    num_success = sum(wins for wins, _ in per_family.values())
    num_tasks = sum(total for _, total in per_family.values())
    low, high = wilson_interval(num_success, num_tasks)
    return EvaluationResult(
        name=name,
        step=step,
        policy_version=policy_version,
        split=split,
        num_tasks=num_tasks,
        num_success=num_success,
        success=num_success / num_tasks if num_tasks else 0.0,
        low=low,
        high=high,
        per_family=dict(sorted(per_family.items())),
    )
