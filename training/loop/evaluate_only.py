"""Evaluation on demand: `evaluation.only` in a config turns the trainer into an evaluator.

`model.path` names any checkpoint's model folder; the policy server has loaded it already, so no weights
enter this process. Prompt, parser, tasks and interval are those of evaluations inside an experiment.
"""

from __future__ import annotations

import logging

from training.contracts.config import ExperimentConfig
from training.contracts.stage_names import ONLY_EVALUATION
from training.contracts.trainer_reports import EvaluationResult
from training.distributed.interrupts import TermSignal
from training.rollouts.coordinator_client import CoordinatorClient
from training.rollouts.group_collector import GroupCollector
from training.rollouts.held_out_success import evaluate_groups, evaluation_requests
from training.rollouts.task_order import evaluation_tasks

logger = logging.getLogger(__name__)
(STAGE,) = ONLY_EVALUATION


def evaluate_only(
    config: ExperimentConfig, coordinator: CoordinatorClient, term: TermSignal
) -> list[EvaluationResult]:
    """Held-out success of what the policy server serves, at each temperature of the config.

    Raises Interrupted on pause, cancel and SIGTERM.
    """
    tasks = evaluation_tasks(coordinator.tasks("heldout"), config.evaluation.num_tasks)
    collector = GroupCollector(coordinator, term)
    requests = evaluation_requests(config, step=0, policy_version=0)
    total = len(tasks) * sum(request.size for request in requests)
    coordinator.report_stage(STAGE, "started", total, "trajectories")
    found = collector.wait_for_all(
        [collector.ask(tasks, request) for request in requests],
        lambda done, total: coordinator.report_progress(STAGE, done, total),
    )
    results = [
        evaluate_groups(groups, name="before", request=request)
        for groups, request in zip(found, requests, strict=True)
    ]
    for result in results:
        coordinator.report_evaluation(result)
        logger.info(
            "temperature %g: success %d of %d = %.0f%% (95%% interval %.0f to %.0f%%)",
            result.temperature, result.num_success, result.num_samples,
            100 * result.success, 100 * result.low, 100 * result.high,
        )  # fmt: skip
    coordinator.report_stage(STAGE, "finished", total, "trajectories")
    return results
