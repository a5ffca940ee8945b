"""What an evaluation and a step keep of how trajectories came out."""

from __future__ import annotations

import pytest

from testing.training.sample_values import make_task, make_trajectory, make_turn
from training.contracts.config import ExperimentConfig
from training.contracts.types import Group, Limit, Purpose, TrajectoryStatus
from training.rollouts.held_out_success import evaluate_groups, evaluation_requests, wilson_interval
from training.rollouts.rollout_metrics import rollout_metrics

BABBLES = {
    "status": TrajectoryStatus.TRUNCATED,
    "limit": Limit.TASK_TURNS,
    "turns": (make_turn(0), make_turn(1, parse_error="no action"), make_turn(2, parse_error="no action")),
}


def groups_of_every_outcome() -> list[Group]:
    """menu: solved, and solved before it babbled to the limit; note: failed, failed at the limit, errored."""
    members = {
        "menu-1": [make_trajectory(1, 1.0), make_trajectory(2, 1.0, **BABBLES)],
        "note-1": [
            make_trajectory(3, 0.6),
            make_trajectory(4, 0.0, **BABBLES),
            make_trajectory(5, None, status=TrajectoryStatus.ERRORED),
        ],
    }
    return [
        Group(
            group_id=number,
            task=make_task(name, family=name.partition("-")[0]),
            purpose=Purpose.EVALUATION,
            trajectories=tuple(found),
        )
        for number, (name, found) in enumerate(members.items(), start=7)
    ]


def test_an_evaluation_tells_what_the_agent_ended_from_what_a_limit_did() -> None:
    (request, _) = evaluation_requests(ExperimentConfig(), step=3, policy_version=4)
    result = evaluate_groups(groups_of_every_outcome(), name="after", request=request)
    assert (result.num_success, result.num_solved_at_limit, result.num_samples) == (2, 1, 4)
    assert (result.success, result.solved) == (0.5, 0.25)
    assert (result.solved_low, result.solved_high) == pytest.approx(wilson_interval(0.75, 3), abs=0.1)
    assert result.solved_low < result.solved < result.solved_high < result.high
    assert (result.num_truncated, result.num_turns, result.num_unparsable_turns) == (2, 8, 4)
    assert result.per_family == {"menu": (2, 2, 1), "note": (0, 2, 0)}
    assert result.by_task == {"menu-1": (2, 2, 7, 1), "note-1": (0, 2, 8, 0)}


def test_a_step_tells_them_apart_too() -> None:
    found = rollout_metrics(groups_of_every_outcome(), [])
    shares = [found[f"rollout/{name}"] for name in ("success", "solved", "solved_at_limit")]
    assert shares == [0.5, 0.25, 0.25]
