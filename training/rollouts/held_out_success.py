"""Held-out success with its uncertainty: what an evaluation asks for, and what its groups amount to."""

from __future__ import annotations

import math
from collections.abc import Sequence

from training.contracts.config import ExperimentConfig
from training.contracts.trainer_reports import EvaluationResult
from training.contracts.types import Group, Purpose
from training.rollouts.group_collector import GroupSpec

Z_95 = 1.959964
SUCCESS_SCORE = 1.0
"""A trajectory succeeded when its task score reaches this (up to rounding)."""


def evaluation_requests(
    config: ExperimentConfig, *, step: int, policy_version: int, sampled_only: bool = False
) -> list[GroupSpec]:
    """What is asked for each task: sampled first, then greedy."""
    passes = config.evaluation_passes[:1] if sampled_only else config.evaluation_passes
    return [
        GroupSpec(
            size=one.samples_per_task,
            purpose=Purpose.EVALUATION,
            step=step,
            temperature=one.temperature,
            policy_version=policy_version,
        )
        for one in passes
    ]


def wilson_interval(num_success: float, num_trials: float) -> tuple[float, float]:
    """95 % Wilson score interval of a proportion; (0, 1) without trials."""
    if num_trials == 0:
        return 0.0, 1.0
    share, z2 = num_success / num_trials, Z_95**2
    centre = (share + z2 / (2 * num_trials)) / (1 + z2 / num_trials)
    half = (
        Z_95 / (1 + z2 / num_trials) * math.sqrt(share * (1 - share) / num_trials + z2 / (4 * num_trials**2))
    )
    return max(0.0, centre - half), min(1.0, centre + half)


def effective_samples(tasks: Sequence[tuple[int, int]]) -> float:
    """Independent samples that `tasks` (successes, samples each) are worth: samples of a task are alike.

    From the variance of the ratio estimator over clusters (Cochran, Sampling Techniques, 1977, ch. 6),
    between the number of tasks and of samples.
    """
    num_tasks, num_samples = len(tasks), sum(count for _, count in tasks)
    if num_samples == num_tasks or num_tasks < 2:
        return num_tasks
    share = sum(won for won, _ in tasks) / num_samples
    squares = sum((won - share * count) ** 2 for won, count in tasks)
    variance = num_tasks / (num_tasks - 1) * squares / num_samples**2
    worth = share * (1 - share) / variance if variance else 0.0
    return min(num_samples, max(num_tasks, worth))


def succeeded(score: float | None) -> bool:
    """True for a full task score."""
    return score is not None and score >= SUCCESS_SCORE - 1e-9


def evaluate_groups(groups: Sequence[Group], *, name: str, request: GroupSpec) -> EvaluationResult:
    """Success over the scored members; errored ones are not tasks that were failed, they are missing."""
    per_family: dict[str, tuple[int, int]] = {}
    by_task: dict[str, tuple[int, int, int]] = {}
    for group in groups:
        scored = group.scored()
        if not scored:
            continue
        won = sum(succeeded(member.score) for member in scored)
        by_task[group.task.task_id] = (won, len(scored), group.group_id)
        wins, total = per_family.get(group.task.family, (0, 0))
        per_family[group.task.family] = (wins + won, total + len(scored))
    num_success = sum(won for won, _, _ in by_task.values())
    num_samples = sum(count for _, count, _ in by_task.values())
    success = num_success / num_samples if num_samples else 0.0
    worth = effective_samples([(won, count) for won, count, _ in by_task.values()])
    low, high = wilson_interval(success * worth, worth)
    return EvaluationResult(
        name=name,
        step=request.step,
        policy_version=request.policy_version,
        split="heldout",
        temperature=request.temperature,
        samples_per_task=request.size,
        num_tasks=len(by_task),
        num_samples=num_samples,
        num_success=num_success,
        success=success,
        low=low,
        high=high,
        per_family=dict(sorted(per_family.items())),
        by_task=by_task,
    )
