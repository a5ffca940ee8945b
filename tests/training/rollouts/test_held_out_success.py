"""What an evaluation and a step keep of how trajectories came out."""

from __future__ import annotations

import pytest

from testing.training.sample_values import make_task, make_trajectory, make_turn
from training.contracts.config import ExperimentConfig
from training.contracts.trainer_reports import EvaluationResult
from training.contracts.trainer_state import ExperimentState
from training.contracts.types import Group, Limit, Purpose, TrajectoryStatus
from training.loop.evaluation import save_evaluated
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
    assert (result.mean_score, result.score_by_task) == (0.65, {"menu-1": 1.0, "note-1": 0.3})


def evaluated(num_solved: int, num_failed: int, num_errored: int) -> EvaluationResult:
    """A greedy evaluation of a task each."""
    request = evaluation_requests(ExperimentConfig(), step=3, policy_version=4)[1]
    scores = [*[1.0] * num_solved, *[0.0] * num_failed, *[None] * num_errored]
    groups = [
        Group(
            group_id=number,
            task=make_task(f"menu-{number}", family="menu"),
            purpose=Purpose.EVALUATION,
            trajectories=(
                make_trajectory(number, score)
                if score is not None
                else make_trajectory(number, None, status=TrajectoryStatus.ERRORED),
            ),
        )
        for number, score in enumerate(scores, start=1)
    ]
    return evaluate_groups(groups, name="during", request=request)


def test_an_evaluation_keeps_what_it_asked_for_and_its_interval_says_what_is_missing() -> None:
    result = evaluated(7, 0, 65)
    assert (result.num_requested, result.num_samples, result.num_errored) == (72, 7, 65)
    assert result.success == 1
    assert not result.is_complete
    assert (result.low, result.high) == pytest.approx((wilson_interval(7, 72)[0], 1.0))
    assert (result.solved_low, result.solved_high) == (result.low, result.high)
    nearly = evaluated(36, 33, 3)
    assert nearly.is_complete
    assert nearly.low == pytest.approx(wilson_interval(36, 72)[0])
    assert nearly.high == pytest.approx(wilson_interval(39, 72)[1])
    assert not evaluated(35, 33, 4).is_complete, "94.4 %"
    whole = evaluated(36, 36, 0)
    assert (whole.low, whole.high) == pytest.approx(wilson_interval(36, 72)), "nothing is missing"
    assert (evaluated(0, 0, 9).low, evaluated(0, 0, 9).high) == (0.0, 1.0)


class Saves:
    """What an experiment saved."""

    def __init__(self, best: float) -> None:
        self.state = ExperimentState(best_success=best)
        self.saved: list[tuple[bool, float | None]] = []

    def save(self, *, is_best: bool = False, success: float | None = None) -> None:
        self.saved.append((is_best, success))


@pytest.mark.parametrize(
    ("result", "best", "ties", "saved"),
    [
        (evaluated(7, 0, 65), -1.0, False, (False, None)),
        (evaluated(7, 0, 65), 0.5, True, (False, None)),
        (evaluated(6, 6, 0), 0.4, False, (True, 0.5)),
        (evaluated(6, 6, 0), 0.5, False, (False, 0.5)),
        (evaluated(6, 6, 0), 0.5, True, (True, 0.5)),
    ],
)
def test_an_evaluation_that_misses_too_much_chooses_no_checkpoint(
    result: EvaluationResult, best: float, ties: bool, saved: tuple
) -> None:
    experiment = Saves(best)
    save_evaluated(experiment, result, ties=ties)  # type: ignore[arg-type]
    assert experiment.saved == [saved]


def test_the_best_checkpoint_is_the_one_that_ends_what_it_solves() -> None:
    request = evaluation_requests(ExperimentConfig(), step=3, policy_version=4)[1]
    result = evaluate_groups(groups_of_every_outcome()[:1], name="after", request=request)
    assert (result.success, result.solved) == (1.0, 0.5)
    experiment = Saves(0.6)
    save_evaluated(experiment, result)  # type: ignore[arg-type]
    assert experiment.saved == [(False, 0.5)]


def test_where_nothing_is_solved_partial_scores_choose_the_best_checkpoint() -> None:
    experiment = Saves(-1.0)
    for score in (0.25, 0.5, 0.375, 0.5):
        request = evaluation_requests(ExperimentConfig(), step=3, policy_version=4)[1]
        group = Group(
            group_id=1,
            task=make_task("form-1", family="form"),
            purpose=Purpose.EVALUATION,
            trajectories=(make_trajectory(1, score),),
        )
        save_evaluated(experiment, evaluate_groups([group], name="during", request=request))  # type: ignore[arg-type]
        experiment.state.best_success = 0.0
    assert [is_best for is_best, _ in experiment.saved] == [True, True, False, False]


def test_what_a_limit_ended_makes_no_checkpoint_better() -> None:
    experiment = Saves(0.5)
    assert evaluated(6, 6, 0).partial == 0.0
    request = evaluation_requests(ExperimentConfig(), step=3, policy_version=4)[1]
    result = evaluate_groups(groups_of_every_outcome()[:1], name="after", request=request)
    assert (result.solved, result.mean_score, result.partial) == (0.5, 1.0, 0.0)
    save_evaluated(experiment, result)  # type: ignore[arg-type]
    assert experiment.saved == [(False, 0.5)]


def test_a_step_tells_them_apart_too() -> None:
    found = rollout_metrics(groups_of_every_outcome(), [])
    shares = [found[f"rollout/{name}"] for name in ("success", "solved", "solved_at_limit")]
    assert shares == [0.5, 0.25, 0.25]
