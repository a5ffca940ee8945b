"""The checkpoint of weights that were evaluated: whether it is the best one, and what it says of itself."""

from __future__ import annotations

import logging

from training.contracts.trainer_reports import EvaluationResult
from training.loop.stage_context import Experiment

logger = logging.getLogger(__name__)


def save_evaluated(experiment: Experiment, result: EvaluationResult, *, ties: bool = False) -> None:
    """Write it; the best when it beats, with `ties` reaches, the best so far. A collective.

    An evaluation that misses too many scores chooses nothing, and its number is not the checkpoint's.
    """
    if not result.is_complete:
        logger.warning(
            "evaluation %s at step %d: %d of %d trajectories have no score, so it chooses no checkpoint",
            result.name, result.step, result.num_errored, result.num_requested,
        )  # fmt: skip
        experiment.save()
        return
    best = experiment.state.best_success
    is_best = result.success > best or (ties and result.success == best)
    experiment.save(is_best=is_best, success=result.success)
