"""Task order and evaluation: balanced, seeded, resumable; success with its interval."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from testing.training.sample_values import make_group, make_task
from training.contracts.config import ExperimentConfig
from training.planning.presets import load_preset
from training.rollouts.curriculum import SolveRateCurriculum, SolveRates
from training.rollouts.held_out_success import (
    effective_samples,
    evaluate_groups,
    evaluation_requests,
    wilson_interval,
)
from training.rollouts.task_order import TaskOrder, evaluation_tasks

TASKS = [
    make_task(f"{family}-{n}", family=family) for family, count in (("a", 5), ("b", 2)) for n in range(count)
]


def test_families_take_turns_whatever_their_size() -> None:
    chosen = TaskOrder(TASKS, seed=3).take(0, 20)
    assert Counter(task.family for task in chosen) == {"a": 10, "b": 10}


def test_shares_by_size_bring_every_task_as_often_as_any_other() -> None:
    order = TaskOrder(TASKS, seed=3, shares="by_size")
    assert Counter(task.task_id for task in order.take(0, 21)) == dict.fromkeys(
        (task.task_id for task in TASKS), 3
    )
    curriculum = SolveRateCurriculum(TASKS, 3, SolveRates(), floor=1.0, shares="by_size")
    chosen = Counter(task.family for task in curriculum.take(0, 7))
    assert chosen == {"a": 5, "b": 2}, "tasks of one step differ"


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
    rewards = ([1.0], [0.5], [None], [1.0, None])
    groups = [
        make_group(found, group_id=n, task=make_task(f"menu-{n}")) for n, found in enumerate(rewards, start=1)
    ]
    (request, _) = evaluation_requests(ExperimentConfig(), step=3, policy_version=4)
    result = evaluate_groups(groups, name="after", request=request)
    assert (result.num_success, result.num_samples, result.num_tasks) == (2, 3, 3)
    assert result.per_family == {"menu": (2, 3, 0)}
    assert result.by_task == {"menu-1": (1, 1, 1, 0), "menu-2": (0, 1, 2, 0), "menu-4": (1, 1, 4, 0)}
    assert result.low == pytest.approx(wilson_interval(2, 5)[0]), "both that are missing would have failed"
    assert result.high == pytest.approx(wilson_interval(4, 5)[1]), "or solved their task"


def test_both_temperatures_are_asked_for_unless_the_config_says_otherwise() -> None:
    def asked(sampling: float = 1.0, **evaluation: object) -> list[tuple[float, int]]:
        config = ExperimentConfig(evaluation=evaluation, sampling={"temperature": sampling})
        requests = evaluation_requests(config, step=0, policy_version=0)
        return [(request.temperature, request.size) for request in requests]

    assert asked() == [(1.0, 1), (0.0, 1)]
    assert asked(0.8, samples_per_task=3) == [(0.8, 3), (0.0, 1)]
    assert asked(0.8, temperature="", greedy=False) == [(0.8, 1)]
    assert asked(0.8, temperature=0.5) == [(0.5, 1), (0.0, 1)]
    assert asked(temperature=0, greedy=False, samples_per_task=3) == [(0.0, 1)], "as older versions stored it"


@pytest.mark.parametrize("name", ["slime-osworld-gspo-1", "slime-osworld-gspo-2", "slime-osworld-sft"])
def test_presets_are_evaluated_at_the_temperature_that_they_train_at(name: str) -> None:
    config = load_preset(name).config
    assert config.sampling.temperature < 1
    assert config.evaluation_passes[0].temperature == config.sampling.temperature


def test_samples_of_a_task_that_always_agree_are_worth_one() -> None:
    alike = [(3, 3)] * 20 + [(0, 3)] * 20
    assert effective_samples(alike) == 40
    half = [(1, 2)] * 40
    assert effective_samples(half) == 40, "no variance at all tells nothing of their worth"


def test_samples_that_agree_in_part_are_worth_what_the_ratio_estimator_says() -> None:
    # share 1/2; squares 4 + 1 + 1 + 0; variance 4/3 x 6 / 16^2 = 1/32; worth 1/4 / (1/32)
    assert effective_samples([(4, 4), (1, 4), (1, 4), (2, 4)]) == pytest.approx(8.0)


def test_the_interval_covers_the_success_of_tasks_never_seen() -> None:
    """Tasks of which half are nearly always and half hardly ever solved, three samples each."""
    rng = random.Random(1)

    def evaluated() -> tuple[float, float]:
        chances = rng.choices([0.05, 0.95], k=72)
        tasks = [(sum(rng.random() < chance for _ in range(3)), 3) for chance in chances]
        worth = effective_samples(tasks)
        return wilson_interval(sum(won for won, _ in tasks) / 216 * worth, worth)

    covered = [low <= 0.5 <= high for low, high in (evaluated() for _ in range(600))]
    assert 0.92 < sum(covered) / 600 < 0.98
