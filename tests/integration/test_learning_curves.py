"""What the learning benchmark says of its arms."""

from __future__ import annotations

from testing.experiment_runs import paused_unscored, was_scored
from testing.learning_curves import side_by_side


def arm(staleness: int, *points: tuple[int, float, float]) -> dict:
    held_out = [{"name": "before", "step": 0, "success": 0.5, "at_s": 0.0}]
    held_out += [{"name": "during", "step": step, "success": won, "at_s": s} for step, won, s in points]
    return {"staleness": staleness, "held_out": held_out}


def test_arms_are_compared_at_equal_steps_and_at_equal_seconds():
    found = side_by_side(
        [arm(0, (20, 0.7, 100.0), (40, 0.9, 200.0)), arm(2, (20, 0.6, 60.0), (40, 0.8, 120.0))]
    )
    assert found["steps"] == [
        {"step": 20, "staleness 0": 0.7, "staleness 2": 0.6},
        {"step": 40, "staleness 0": 0.9, "staleness 2": 0.8},
    ]
    assert [row["seconds"] for row in found["seconds"]] == [30.0, 60.0, 90.0, 120.0]
    assert [row["staleness 0"] for row in found["seconds"]] == [None, None, None, 0.7]
    assert [row["staleness 2"] for row in found["seconds"]] == [None, 0.6, 0.6, 0.8]


def test_an_arm_that_was_never_evaluated_is_compared_with_nothing():
    assert side_by_side([arm(0), arm(2, (20, 0.6, 60.0))]) == {"steps": [], "seconds": []}


def test_an_evaluation_without_one_scored_task_is_no_result():
    assert was_scored({"success": 0.0, "num_tasks": 72})
    assert not was_scored({"success": 0.0, "num_tasks": 0})
    assert not was_scored(None)


def test_a_run_that_paused_because_nothing_is_scored_is_not_waited_for() -> None:
    paused = {"status": "paused", "incidents": [{"kind": "nothing_scored"}]}
    assert paused_unscored(paused)
    assert not paused_unscored(paused | {"status": "running"})
    assert not paused_unscored(paused | {"incidents": [{"kind": "resumed"}]})
