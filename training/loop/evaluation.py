"""Held-out success of the weights that the engine has, and the checkpoint that it is the success of."""

import logging

from training.contracts.stage_names import StageName
from training.contracts.trainer_reports import EvaluationResult
from training.loop.eye_test import eye_test
from training.loop.stage_context import Experiment, stage
from training.rollouts.held_out_success import evaluate_groups, evaluation_requests
from training.rollouts.task_order import evaluation_tasks

logger = logging.getLogger(__name__)


def evaluate(
    experiment: Experiment,
    name: str,
    *,
    stage_name: StageName | None = None,
    step: int | None = None,
    sampled_only: bool = False,
) -> EvaluationResult:
    """Held-out success with the weights that the engine has now: the sampled one, or greedy if it is alone.

    All temperatures are reported, with what measured them. `stage_name` is None for an evaluation inside
    another stage; `step` defaults to the GRPO step. A collective.
    """
    config, state = experiment.config, experiment.state
    step = state.grpo_step if step is None else step
    tasks = evaluation_tasks(experiment.tasks("heldout"), config.evaluation.num_tasks)
    requests = evaluation_requests(
        config, step=step, policy_version=state.policy_version, sampled_only=sampled_only
    )
    eyes = eye_test(experiment)
    total = len(tasks) * sum(request.size for request in requests)
    with stage(experiment, stage_name, total, "trajectories"):
        found = experiment.collect(tasks, requests, stage_name)
    results = [
        evaluate_groups(groups, name=name, request=request, eyes=eyes)
        for groups, request in zip(found, requests, strict=True)
    ]
    if experiment.coordinator is not None:
        for result in results:
            experiment.coordinator.report_evaluation(result)
    return results[0]


def save_evaluated(experiment: Experiment, result: EvaluationResult, *, ties: bool = False) -> None:
    """Write it; the best when the agent solves and ends more than in the best so far.

    Where it solves as much, partial scores decide, and then `ties`. A collective.

    An evaluation that misses too many scores chooses nothing, and its number is not the checkpoint's.
    """
    if not result.is_complete:
        logger.warning(
            "evaluation %s at step %d: %d of %d trajectories have no score, so it chooses no checkpoint",
            result.name, result.step, result.num_errored, result.num_requested,
        )  # fmt: skip
        experiment.save()
        return
    state = experiment.state
    found, best = (result.solved, result.partial), (state.best_success, state.best_partial)
    is_best = found > best or (ties and found == best)
    if is_best:
        state.best_partial = result.partial
    experiment.save(is_best=is_best, success=result.solved)
