"""Evaluations as trainers report them, without a run: totals follow from how each task went.

result = evaluation_result(won=30, total=40)                  # 40 tasks of one family, one sample each
evaluation = make_evaluation(experiment, tasks={"menu-1": (2, 3)}, temperature=0.0)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from testing.factories import make_group, make_trajectory
from training.contracts.trainer_reports import EvaluationResult
from training.contracts.types import Purpose
from webapp.analysis.services.evaluations import record_evaluation
from webapp.experiments.models import Evaluation, Experiment, TaskRecord

TaskOutcome = tuple[int, int] | tuple[int, int, int] | tuple[int, int, int, int]
"""(successes, samples), with the id of the group when there is one, and how many of them at a limit."""


def evaluation_result(
    *,
    tasks: Mapping[str, TaskOutcome] | None = None,
    won: int = 1,
    total: int = 2,
    temperature: float = 1.0,
    **values: Any,
) -> EvaluationResult:
    """A report; without `tasks`, the first `won` of `total` tasks are solved.

    Where `values` give a share by the state alone, the agent ended all of it.
    """
    outcomes = tasks or {f"menu-{number}": (int(number < won), 1) for number in range(total)}
    by_task = {name: (*found, 0, 0)[:4] for name, found in outcomes.items()}
    num_success, num_samples, _, at_limit = map(sum, zip(*by_task.values(), strict=True))
    success, solved = num_success / num_samples, (num_success - at_limit) / num_samples
    per_family: dict[str, tuple[int, int, int]] = {}
    for name, (won, samples, _, cut) in by_task.items():
        family = name.rpartition("-")[0]
        wins, count, cuts = per_family.get(family, (0, 0, 0))
        per_family[family] = (wins + won, count + samples, cuts + cut)
    for own, name in (("solved", "success"), ("solved_low", "low"), ("solved_high", "high")):
        if name in values:
            values.setdefault(own, values[name])
    shared = {"name": "before", "step": 0, "policy_version": 0, "split": "heldout"}
    low, high = normal_interval(success, num_samples)
    solved_low, solved_high = normal_interval(solved, num_samples)
    return EvaluationResult.model_validate(
        {
            **shared,
            "temperature": temperature,
            "samples_per_task": max(found[1] for found in by_task.values()),
            "num_tasks": len(by_task),
            "num_requested": num_samples,
            "num_errored": 0,
            "num_samples": num_samples,
            "num_success": num_success,
            "num_solved_at_limit": at_limit,
            "num_truncated": at_limit,
            "num_turns": 2 * num_samples,
            "num_unparsable_turns": at_limit,
            "success": success,
            "low": low,
            "high": high,
            "solved": solved,
            "solved_low": solved_low,
            "solved_high": solved_high,
            "per_family": per_family,
            "by_task": by_task,
            "mean_score": success,
            "score_by_task": {name: won / count for name, (won, count, *_) in by_task.items()},
            **values,
        }
    )


def normal_interval(share: float, number: int) -> tuple[float, float]:
    spread = 1.96 * (share * (1 - share) / number) ** 0.5
    return max(0.0, share - spread), min(1.0, share + spread)


def make_evaluation(experiment: Experiment, **values: Any) -> Evaluation:
    """The rows of a report; arguments are those of `evaluation_result`."""
    result = evaluation_result(**values)
    record_evaluation(experiment_id=experiment.pk, result=result)
    return experiment.evaluations.get(name=result.name, step=result.step, temperature=result.temperature)


def make_task_trajectories(
    experiment: Experiment, task: TaskRecord, scores: Sequence[float], *, texts: Sequence[str], **values: Any
) -> TaskOutcome:
    """A group of an evaluation: a member per score, each types `texts` and ends. What `tasks` holds of it."""
    values.setdefault("purpose", Purpose.EVALUATION)
    group = make_group(experiment=experiment, task=task, size=len(scores), **values)
    for member, score in enumerate(scores):
        trajectory = make_trajectory(group=group, member=member, turns=len(texts) + 1, reward=score)
        for index, text in enumerate(texts):
            trajectory.turns.filter(index=index).update(action={"kind": "type", "text": text})
    return int(sum(scores)), len(scores), group.pk
