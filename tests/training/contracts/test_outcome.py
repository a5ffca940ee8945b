"""How trajectories came out, by the one rule that all share."""

from __future__ import annotations

import pytest

from training.contracts.outcome import OUTCOME_LABELS, Outcome, outcome_of
from training.contracts.types import TrajectoryStatus


@pytest.mark.parametrize(
    ("status", "score", "expected"),
    [
        (TrajectoryStatus.TERMINATED, 1.0, Outcome.SOLVED),
        (TrajectoryStatus.TERMINATED, 1.0 - 1e-12, Outcome.SOLVED),
        (TrajectoryStatus.TRUNCATED, 1.0, Outcome.SOLVED_AT_LIMIT),
        (TrajectoryStatus.TERMINATED, 0.6, Outcome.FAILED),
        (TrajectoryStatus.TRUNCATED, 0.0, Outcome.FAILED),
        (TrajectoryStatus.TERMINATED, None, None),
        (TrajectoryStatus.ERRORED, None, Outcome.ERRORED),
        (TrajectoryStatus.CANCELLED, 1.0, Outcome.CANCELLED),
        (TrajectoryStatus.RUNNING, None, None),
        (TrajectoryStatus.EVALUATING, 1.0, None),
    ],
)
def test_outcome_follows_from_status_and_score(
    status: TrajectoryStatus, score: float | None, expected: Outcome | None
) -> None:
    assert outcome_of(status, score) is expected


def test_every_outcome_has_a_label() -> None:
    assert OUTCOME_LABELS.keys() == set(Outcome)
