"""Evaluation on demand: `evaluation.only` in a config turns the trainer into an evaluator.

`model.path` names any checkpoint's model folder, which the policy server has loaded. The eye test loads it
here too, as the trainer would. Prompt, parser, tasks and interval are those of other evaluations.
"""

import logging
import time

from training.contracts.config import ExperimentConfig
from training.contracts.eye_test import EyeTest, EyeTestRequest
from training.contracts.stage_names import ONLY_EVALUATION
from training.contracts.trainer_reports import EvaluationResult
from training.distributed.interrupts import TermSignal
from training.loop.eye_test import eye_alarm, judged, settle
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
    eyes = _eye_test(config, coordinator)
    total = len(tasks) * sum(request.size for request in requests)
    coordinator.report_stage(STAGE, "started", total, "trajectories")
    found = collector.wait_for_all(
        [collector.ask(tasks, request) for request in requests],
        lambda done, total: coordinator.report_progress(STAGE, done, total),
    )
    results = [
        evaluate_groups(groups, name="before", request=request, eyes=eyes)
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


def _eye_test(config: ExperimentConfig, coordinator: CoordinatorClient) -> EyeTest | None:
    """None where it is off. Raises EyesDiffer."""
    if config.evaluation.eye_test == "off":
        return None
    started = time.monotonic()
    # Imported here: without the test no model is loaded.
    from training.loop.reference_reader import reference_reader

    gap, is_whole = reference_reader(config)
    answer = coordinator.eye_test(EyeTestRequest(is_whole=is_whole))
    found = judged(answer, gap, config, 0, started)
    if found.problem:
        coordinator.report_alarms(0, [eye_alarm(found, 0)])
        settle(found.problem, config)
    return found
