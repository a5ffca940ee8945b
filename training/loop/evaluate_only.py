"""Evaluation on demand: `evaluation.only` in a config turns the trainer into an evaluator.

`model.path` names any checkpoint's model folder; the policy server has loaded it already, so no weights
enter this process. Prompt, parser, tasks and interval are those of evaluations inside an experiment.
"""

from __future__ import annotations

import logging

from training.contracts.config import ExperimentConfig
from training.contracts.stage_names import ONLY_EVALUATION
from training.contracts.trainer_reports import EvaluationResult
from training.contracts.types import Purpose
from training.distributed.interrupts import TermSignal
from training.rollouts.coordinator_client import CoordinatorClient
from training.rollouts.group_collector import GroupCollector, GroupSpec
from training.rollouts.held_out_success import evaluate_groups
from training.rollouts.task_order import evaluation_tasks

logger = logging.getLogger(__name__)
(STAGE,) = ONLY_EVALUATION


def evaluate_only(
    config: ExperimentConfig, coordinator: CoordinatorClient, term: TermSignal
) -> EvaluationResult:
    """Held-out success of what the policy server serves. Raises Interrupted on pause, cancel and SIGTERM."""
    tasks = evaluation_tasks(coordinator.tasks("heldout"), config.evaluation.num_tasks)
    collector = GroupCollector(coordinator, term)
    request = GroupSpec(
        size=1,
        purpose=Purpose.EVALUATION,
        step=0,
        temperature=config.evaluation.temperature,
        policy_version=0,
    )
    coordinator.report_stage(STAGE, "started", len(tasks), "tasks")
    groups = collector.wait(
        collector.ask(tasks, request), lambda done, total: coordinator.report_progress(STAGE, done, total)
    )
    result = evaluate_groups(groups, name="before", step=0, policy_version=0)
    coordinator.report_evaluation(result)
    coordinator.report_stage(STAGE, "finished", len(tasks), "tasks")
    logger.info(
        "success %d of %d = %.0f%% (95%% interval %.0f to %.0f%%)",
        result.num_success, result.num_tasks, 100 * result.success, 100 * result.low, 100 * result.high,
    )  # fmt: skip
    return result
