"""Curriculum by solve rate, and the temperature's two phases."""

from __future__ import annotations

from collections import Counter

import pytest

from testing.training.sample_values import make_group, make_task
from training.contracts.config import ConfigError, SamplingConfig, parse_config
from training.contracts.outcome import SuccessRule
from training.contracts.types import Group, TrajectoryStatus
from training.rewards.success_rule import success_rule
from training.rollouts.curriculum import SolveRateCurriculum, SolveRates
from training.rollouts.groups_in_flight import num_flat
from training.rollouts.temperature_schedule import temperature_at

STATE, ENDED = SuccessRule.STATE, SuccessRule.ENDED
TASKS = [make_task(f"menu-{number}") for number in range(4)]


REJECTION = {"name": "rejection_fine_tuning", "void_turns": "no_credit"}


def own_reward(expression: str) -> dict:
    """Section rewards with one term that a person wrote."""
    row = {"term": "own", "weight": 1.0, "expression": expression, "count": "once"}
    return {"preset": "own.v1", "definition": {"terms": [row]}}


def order(rates: SolveRates, floor: float = 0.0) -> SolveRateCurriculum:
    return SolveRateCurriculum(TASKS, 7, rates, floor)


def test_tasks_solved_half_of_the_time_come_more_often() -> None:
    rates = SolveRates()
    for task, rewards in zip(TASKS, ([1, 1, 1, 1], [0, 0, 0, 0], [1, 0, 1, 0], [1, 1, 1, 0]), strict=True):
        rates.record([make_group([float(reward) for reward in rewards], task=task)] * 3, STATE)
    chosen = Counter(order(rates).take(position, 1)[0].task_id for position in range(400))
    assert chosen["menu-2"] > chosen["menu-3"] > max(chosen["menu-0"], chosen["menu-1"]) > 0


def test_unseen_tasks_are_tried_before_known_ones() -> None:
    rates = SolveRates()
    rates.record([make_group([0.0] * 8, task=TASKS[0])], STATE)
    assert rates.weight("menu-1") == 1.0
    assert rates.weight("menu-0") < 0.4


def test_the_floor_keeps_hopeless_tasks_in_the_game() -> None:
    rates = SolveRates()
    for task in TASKS[:3]:
        rates.record([make_group([0.0] * 50, task=task)] * 5, STATE)
    chosen = Counter(order(rates, floor=1.0).take(position, 1)[0].task_id for position in range(200))
    assert min(chosen.values()) > 30


def test_a_step_has_different_tasks_and_draws_repeat_exactly() -> None:
    taken = order(SolveRates()).take(8, 4)
    assert len({task.task_id for task in taken}) == 4
    assert order(SolveRates()).take(8, 4) == taken


def test_old_results_fade() -> None:
    rates = SolveRates()
    rates.record([make_group([1.0] * 8, task=TASKS[0])], STATE)
    for _ in range(6):
        rates.record([make_group([0.0] * 8, task=TASKS[0])], STATE)
    wins, trials = rates.counts["menu-0"]
    assert wins / trials < 0.06


def reached_by_all(*, num_ended: int) -> Group:
    """Eight members with a full score; the others went on until a limit."""
    group = make_group([1.0] * 8, task=TASKS[0])
    members = tuple(
        member.model_copy(update={"status": TrajectoryStatus.TRUNCATED}) if place >= num_ended else member
        for place, member in enumerate(group.trajectories)
    )
    return group.model_copy(update={"trajectories": members})


@pytest.mark.parametrize(("rule", "wins"), [(STATE, 8), (ENDED, 4)])
def test_a_win_at_a_limit_counts_where_the_state_does(rule: SuccessRule, wins: float) -> None:
    rates = SolveRates()
    rates.record([reached_by_all(num_ended=4)], rule)
    assert rates.counts["menu-0"] == [wins, 8]


@pytest.mark.parametrize(
    ("config", "rule"),
    [
        ({}, ENDED),
        ({"rewards": {"preset": "windows-keyboard.v2"}}, ENDED),
        ({"rewards": {"preset": "first-desk.v1"}}, STATE),
        ({"rewards": {"preset": "slime-osworld.v2"}}, STATE),
        ({"rewards": {"preset": "task-score.v1"}}, STATE),
        ({"rewards": own_reward("score")}, STATE),
        ({"rewards": own_reward("claim == 'success' ? score : 0.0")}, ENDED),
        ({"rewards": own_reward("score / (num_turns - 2.0)")}, ENDED),
        ({"rewards": {"preset": "task-score.v1"}, "algorithm": REJECTION}, ENDED),
    ],
)
def test_the_rule_is_what_the_update_tells_apart(config: dict, rule: SuccessRule) -> None:
    parsed = parse_config(config)
    assert success_rule(parsed.algorithm, parsed.rewards) is rule


@pytest.mark.parametrize(("step", "temperature"), [(0, 0.8), (4, 0.8), (5, 0.5), (50, 0.5)])
def test_the_temperature_has_two_phases(step: int, temperature: float) -> None:
    config = SamplingConfig(temperature=0.8, later_temperature=0.5, later_from_step=5)
    assert temperature_at(config, step) == temperature


@pytest.mark.parametrize("half", [{"later_temperature": 0.5}, {"later_from_step": 5}])
def test_half_a_schedule_is_refused(half: dict) -> None:
    with pytest.raises(ConfigError, match=r"sampling\.later_temperature"):
        parse_config({"sampling": half})


def test_flat_groups_are_those_that_teach_nothing() -> None:
    groups = [make_group(rewards) for rewards in ([0.0, 0.0], [1.0, 0.0], [1.0, None], [None, None])]
    assert num_flat(groups) == 3
