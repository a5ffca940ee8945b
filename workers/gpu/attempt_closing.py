"""How an attempt is closed: its row, its experiment's status, and what comes next."""

from __future__ import annotations

from training.contracts.config import ExperimentConfig
from workers.gpu.webapp_imports import (
    Attempt,
    AttemptStatus,
    Experiment,
    ExperimentStatus,
    attempts,
    patiently,
    status_changes,
)


def close_stopped(attempt: Attempt, reason: str) -> None:
    """Cancelled or paused, whichever the people asked for."""
    experiment_id = attempt.experiment_id
    status = patiently(Experiment.objects.values_list("status", flat=True).get, pk=experiment_id)
    if status == ExperimentStatus.CANCELLING:
        end(attempt, AttemptStatus.CANCELLED, reason, ExperimentStatus.CANCELLED, "Cancelled.")
        return
    if status == ExperimentStatus.PAUSING:
        message = "Paused; the gpu worker is free. Resume goes on from the last checkpoint."
        end(attempt, AttemptStatus.PAUSED, reason, ExperimentStatus.PAUSED, message)
        return
    # The trainer saved and left because it was ended from outside: go on from there.
    close_crashed(attempt, attempt.experiment.settings, reason)


def end(attempt: Attempt, status: AttemptStatus, reason: str, to: ExperimentStatus, message: str) -> None:
    """Close the attempt and move its experiment, however long the database lets that wait."""
    patiently(attempts.end_attempt, attempt=attempt, status=status, reason=reason)
    patiently(status_changes.change_status, attempt.experiment_id, to, message=message)


def close_incomplete(attempt: Attempt, reason: str) -> None:
    """Its hosts did not all come: they are called again, and no restart is used up."""
    patiently(attempts.requeue_incomplete, attempt=attempt, reason=reason)


def close_crashed(
    attempt: Attempt, config: ExperimentConfig, reason: str, max_restarts: int | None = None
) -> None:
    """Queue the next attempt, or fail when there were too many."""
    patiently(
        attempts.requeue_after_crash,
        attempt=attempt,
        status=AttemptStatus.CRASHED,
        reason=reason,
        max_restarts=config.checkpoints.max_restarts if max_restarts is None else max_restarts,
    )
