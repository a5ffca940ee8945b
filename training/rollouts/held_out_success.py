"""Held-out success with its uncertainty: what an evaluation asks for, and what its groups amount to."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from training.contracts.config import ExperimentConfig
from training.contracts.eye_test import EyeTest
from training.contracts.outcome import Outcome, outcome_of
from training.contracts.trainer_reports import EvaluationResult
from training.contracts.types import Group, Purpose, Trajectory, TrajectoryStatus
from training.rollouts.group_collector import GroupSpec
from training.statistics.share_interval import wilson_interval


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


class _Share(NamedTuple):
    value: float
    low: float
    high: float


def _share(tasks: Sequence[tuple[int, int]], num_missing: int) -> _Share:
    """Of `tasks` (successes, samples each), with its 95 % interval.

    The interval holds whatever the `num_missing` samples without a score would have been: its lower bound
    takes them for failures, its upper one for successes (Manski, Partial Identification, 2003, ch. 1).
    """
    num_samples = sum(count for _, count in tasks)
    if not num_samples:
        return _Share(0.0, 0.0, 1.0)
    won, num_all = sum(won for won, _ in tasks), num_samples + num_missing
    worth = effective_samples(tasks) * num_all / num_samples
    low, _ = wilson_interval(worth * won / num_all, worth)
    _, high = wilson_interval(worth * (won + num_missing) / num_all, worth)
    return _Share(won / num_samples, low, high)


@dataclass(slots=True)
class _Tally:
    """What counts over scored members."""

    num_success: int = 0
    num_samples: int = 0
    num_at_limit: int = 0
    num_truncated: int = 0
    num_turns: int = 0
    num_unparsable: int = 0
    score: float = 0.0
    """Sum."""

    def add(self, member: Trajectory) -> None:
        outcome = outcome_of(member.status, member.score)
        self.score += member.score or 0.0
        self.num_success += outcome in (Outcome.SOLVED, Outcome.SOLVED_AT_LIMIT)
        self.num_at_limit += outcome is Outcome.SOLVED_AT_LIMIT
        self.num_truncated += member.status is TrajectoryStatus.TRUNCATED
        self.num_samples += 1
        self.num_turns += len(member.turns)
        self.num_unparsable += sum(turn.parse_error is not None for turn in member.turns)


def evaluate_groups(
    groups: Sequence[Group], *, name: str, request: GroupSpec, eyes: EyeTest | None = None
) -> EvaluationResult:
    """Success over the scored members; errored ones are not tasks that were failed, they are missing.

    `groups`: one per task that was asked for; `eyes`: what measured it.
    """
    total, families = _Tally(), defaultdict[str, _Tally](_Tally)
    by_task: dict[str, tuple[int, int, int, int]] = {}
    scores: dict[str, float] = {}
    for group in groups:
        if not (scored := group.scored()):
            continue
        own = _Tally()
        for member in scored:
            for tally in (own, total, families[group.task.family]):
                tally.add(member)
        by_task[group.task.task_id] = (own.num_success, own.num_samples, group.group_id, own.num_at_limit)
        scores[group.task.task_id] = own.score / own.num_samples
    num_requested = sum(max(request.size, len(group.trajectories)) for group in groups)
    missing = num_requested - total.num_samples
    success = _share([(won, count) for won, count, *_ in by_task.values()], missing)
    solved = _share([(won - at_limit, count) for won, count, _, at_limit in by_task.values()], missing)
    return EvaluationResult(
        name=name,
        step=request.step,
        policy_version=request.policy_version,
        split="heldout",
        temperature=request.temperature,
        samples_per_task=request.size,
        num_tasks=len(by_task),
        num_requested=num_requested,
        num_errored=missing,
        num_samples=total.num_samples,
        num_success=total.num_success,
        num_solved_at_limit=total.num_at_limit,
        num_truncated=total.num_truncated,
        num_turns=total.num_turns,
        num_unparsable_turns=total.num_unparsable,
        success=success.value,
        low=success.low,
        high=success.high,
        solved=solved.value,
        solved_low=solved.low,
        solved_high=solved.high,
        per_family={
            family: (found.num_success, found.num_samples, found.num_at_limit)
            for family, found in sorted(families.items())
        },
        by_task=by_task,
        mean_score=total.score / total.num_samples if total.num_samples else None,
        score_by_task=scores,
        eyes=eyes,
    )
