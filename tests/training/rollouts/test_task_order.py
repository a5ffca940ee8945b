"""Task order and evaluation: balanced, seeded, resumable; success with its interval."""

from __future__ import annotations

from collections import Counter

import pytest

from testing.training.sample_values import make_group, make_task
from training.rollouts.held_out_success import evaluate_groups, wilson_interval
from training.rollouts.task_order import TaskOrder, evaluation_tasks

TASKS = [
    make_task(f"{family}-{n}", family=family) for family, count in (("a", 5), ("b", 2)) for n in range(count)
]


def test_families_take_turns_whatever_their_size() -> None:
    chosen = TaskOrder(TASKS, seed=3).take(0, 20)
    assert Counter(task.family for task in chosen) == {"a": 10, "b": 10}


def test_every_task_comes_once_per_pass() -> None:
    chosen = [task.task_id for task in TaskOrder(TASKS, seed=3).take(0, 10) if task.family == "a"]
    assert sorted(chosen) == [f"a-{n}" for n in range(5)]


def test_the_cursor_is_the_whole_state() -> None:
    order = TaskOrder(TASKS, seed=3)
    assert order.take(0, 4) + TaskOrder(TASKS, seed=3).take(4, 9) == order.take(0, 13)
    assert order.take(0, 13) != TaskOrder(TASKS, seed=4).take(0, 13)


def test_evaluation_takes_different_tasks_of_all_families() -> None:
    assert len({task.task_id for task in evaluation_tasks(TASKS, 100)}) == 7
    assert Counter(task.family for task in evaluation_tasks(TASKS, 4)) == {"a": 2, "b": 2}
    with pytest.raises(ValueError, match=r"evaluation\.num_tasks"):
        evaluation_tasks([], 3)


@pytest.mark.parametrize(
    ("wins", "trials", "low", "high"),
    [(0, 0, 0.0, 1.0), (0, 10, 0.0, 0.2775), (5, 10, 0.2366, 0.7634), (60, 72, 0.7310, 0.9020)],
)
def test_wilson_interval_has_the_known_values(wins: int, trials: int, low: float, high: float) -> None:
    assert wilson_interval(wins, trials) == (pytest.approx(low, abs=1e-3), pytest.approx(high, abs=1e-3))


def test_errored_trajectories_are_missing_not_failed() -> None:
    groups = [make_group([reward], group_id=n) for n, reward in enumerate((1.0, 0.5, None, 1.0), start=1)]
    result = evaluate_groups(groups, name="after", step=3, policy_version=4)
    assert (result.num_success, result.num_tasks) == (2, 3)
    assert result.per_family == {"menu": (2, 3)}
    assert result.low < result.success < result.high
