"""Credit by turn: node means against numpy, and the cases that it was made for."""

from __future__ import annotations

import random

import numpy as np
import pytest

from training.batch.advantages import SharedStates, group_advantages
from training.statistics.turn_values import NodeValue, TurnValue, interval_of_change, turn_values


def by_numpy(rewards: dict, states: dict, least: int) -> dict[int, np.ndarray]:
    """The same by a matrix of visits: [trajectories, nodes], column 0 is the start."""
    keys, firsts = list(rewards), {row[0] for row in states.values() if row} - {""}
    names = ["start", *sorted({state for row in states.values() for state in row} - firsts - {""})]
    visits = np.zeros((len(keys), len(names)))
    visits[:, 0] = 1
    for line, key in enumerate(keys):
        for state in states[key]:
            if state and state not in firsts:
                visits[line, names.index(state)] = 1
    reward = np.array([rewards[key] for key in keys])
    values = visits.T @ reward / visits.sum(0)
    counts = visits.sum(0) >= least
    counts[0] = True
    found = {}
    for key in keys:
        nodes = [
            0 if place == 0 or state in firsts else names.index(state) if state else -1
            for place, state in enumerate(states[key])
        ]
        at = [values[node] if node >= 0 and counts[node] else np.nan for node in nodes]
        left, right = np.array([*at, rewards[key]]), np.array([*at, rewards[key]])
        for place in range(1, len(left)):
            left[place] = left[place - 1] if np.isnan(left[place]) else left[place]
        for place in reversed(range(len(right) - 1)):
            right[place] = right[place + 1] if np.isnan(right[place]) else right[place]
        found[key] = right[1:] - left[:-1]
    return found


@pytest.mark.parametrize("seed", range(20))
def test_changes_are_those_of_numpy_to_1e_12(seed: int) -> None:
    rng = random.Random(seed)
    rewards = {key: rng.choice([0.0, 1.0, rng.random()]) for key in range(8)}
    states = {
        key: [
            f"{place}{rng.randrange(3)}" if rng.random() < 0.9 else "" for place in range(rng.randrange(1, 9))
        ]
        for key in rewards
    }
    least = rng.randrange(1, 4)
    expected = by_numpy(rewards, states, least)
    found = turn_values(rewards, states, least)
    result = group_advantages(rewards, scale=True, states=SharedStates(of_turns=states, least_visits=least))
    assert result is not None
    std = np.std(list(rewards.values()), ddof=1)
    for key, row in expected.items():
        assert np.abs(np.array([turn.change for turn in found[key]]) - row).max() <= 1e-12
        assert np.abs(np.array(result.turns[key]) - row / (std + 1e-6)).max() <= 1e-12


def test_without_a_shared_screen_it_is_grpo() -> None:
    rewards = {1: 1.0, 2: 0.0, 3: 0.0, 4: 0.0}
    states = {key: ["first", f"{key}a", f"{key}b"] for key in rewards}
    plain = group_advantages(rewards, scale=True)
    shared = group_advantages(rewards, scale=True, states=SharedStates(of_turns=states, least_visits=2))
    assert plain is not None
    assert shared is not None
    assert shared.advantages == pytest.approx(plain.advantages)
    assert all(turn == pytest.approx(plain.advantages[key]) for key in rewards for turn in shared.turns[key])


def test_the_changes_of_a_trajectory_add_up_to_its_reward_above_the_mean() -> None:
    rewards = {1: 1.0, 2: 0.0, 3: 0.4}
    states = {1: ["s", "a", "b", "c"], 2: ["s", "a", "d"], 3: ["s", "e", "b", "a"]}
    for key, row in turn_values(rewards, states, 2).items():
        stretches = {turn.first: turn.change for turn in row}
        assert sum(stretches.values()) == pytest.approx(rewards[key] - 1.4 / 3)


def test_a_member_whose_time_ran_out_before_its_first_turn_counts_and_has_no_turn() -> None:
    rewards = {1: 1.0, 2: 0.0, 3: 0.0}
    states = {1: ["s", "a"], 2: ["s", "a"], 3: []}
    values = turn_values(rewards, states, 2)
    assert values[3] == ()
    assert [turn.change for turn in values[1]] == pytest.approx([0.5 - 1 / 3, 0.5])
    result = group_advantages(rewards, scale=False, states=SharedStates(of_turns=states, least_visits=2))
    assert result is not None
    assert (result.advantages[3], result.turns[3]) == (0.0, (0.0,))


def test_a_planted_wrong_turn_takes_the_blame_and_its_siblings_right_ones_none() -> None:
    """All open the menu; then four choose the right row and four the wrong one, and both stop."""
    rewards = {key: float(key < 4) for key in range(8)}
    states = {key: ["desk", "menu", "right" if key < 4 else "wrong"] for key in rewards}
    values = turn_values(rewards, states, 2)
    assert [turn.change for turn in values[7]] == [0.0, -0.5, 0.0]
    assert [turn.change for turn in values[0]] == [0.0, 0.5, 0.0]


def test_garbage_after_the_right_click_gets_no_credit() -> None:
    """Seven click right and write garbage until the limit, one clicks wrong and stops."""
    rewards = dict.fromkeys(range(7), 0.917) | {7: 0.10}
    states = {key: ["desk", "solved", "solved"] for key in range(7)} | {7: ["desk", "wrong"]}
    result = group_advantages(rewards, scale=True, states=SharedStates(of_turns=states, least_visits=2))
    plain = group_advantages(rewards, scale=True)
    assert result is not None
    assert plain is not None
    for key in range(7):
        assert result.turns[key] == pytest.approx((plain.advantages[key], 0.0, 0.0))
    alone = group_advantages(rewards, scale=True, states=SharedStates(of_turns=states, least_visits=1))
    assert alone is not None
    assert alone.turns[7] == pytest.approx((plain.advantages[7], 0.0)), "its terminate is not to blame"


def test_a_turn_that_changes_nothing_is_worth_nothing_and_unknown_screens_are_never_shared() -> None:
    states = {1: ["s", "s", "", "x"], 2: ["t", "", "y"]}
    values = turn_values({1: 1.0, 2: 0.0}, states, 1)
    assert [turn.change for turn in values[1]] == [0.0, 0.5, 0.5, 0.0]
    assert (values[1][1].first, values[1][1].last) == (1, 2)
    assert [turn.change for turn in values[2]] == [-0.5, -0.5, 0.0]


def test_a_measured_value_stands_in_place_of_its_nodes() -> None:
    states = {1: ["s", "a", "b"], 2: ["s", "a", "d"]}
    measured = {2: {1: NodeValue(0.6, 8), 2: NodeValue(0.1, 8), 9: NodeValue(1.0, 8)}}
    values = turn_values({1: 1.0, 2: 0.0}, states, 2, measured)
    assert [turn.change for turn in values[2]] == pytest.approx([0.1, -0.5, -0.1])
    assert [turn.change for turn in values[1]] == [0.0, 0.5, 0.5]


def test_equal_rewards_teach_nothing_by_turn_either() -> None:
    states = {1: ["s", "a"], 2: ["s", "b"]}
    kept = SharedStates(of_turns=states, least_visits=1)
    result = group_advantages({1: 1.0, 2: 1.0}, scale=True, states=kept)
    assert result is not None
    assert result.turns == {1: (0.0, 0.0), 2: (0.0, 0.0)}


def test_the_interval_of_a_change_holds_the_truth_about_as_often_as_it_says() -> None:
    rng, held, tries = random.Random(5), 0, 400
    for _ in range(tries):
        right = {key: float(rng.random() < 0.9) for key in range(12)}
        wrong = {key: float(rng.random() < 0.2) for key in range(12, 24)}
        states = {key: ["s", "r" if key in right else "w"] for key in right | wrong}
        turn = turn_values(right | wrong, states, 2)[20][0]
        low, high = interval_of_change(turn, 0.0, 1.0)
        held += low <= 0.2 - 0.55 <= high
        assert low <= turn.change <= high
    assert held / tries >= 0.94


def test_of_two_samples_it_is_newcombes_interval() -> None:
    """His first example: 56 of 70 against 48 of 80, method 10."""
    turn = TurnValue(NodeValue(48 / 80, 80), NodeValue(56 / 70, 70), 0, 0)
    assert interval_of_change(turn, 0.0, 1.0) == pytest.approx((0.0524, 0.3339), abs=5e-5)


def test_where_all_siblings_went_the_same_way_nothing_is_sure() -> None:
    turn = turn_values({1: 1.0, 2: 0.0}, {1: ["s", "a"], 2: ["s", "a"]}, 2)[1][0]
    low, high = interval_of_change(turn, 0.0, 1.0)
    assert low == pytest.approx(-high)
    assert high > 0.5


def test_an_interval_scales_with_the_rewards_and_is_a_point_where_they_cannot_differ() -> None:
    states = {key: ["s", "a" if key < 4 else "b"] for key in range(8)}
    one = turn_values({key: float(key < 4) for key in range(8)}, states, 2)[0][0]
    two = turn_values({key: 2.0 * (key < 4) - 1 for key in range(8)}, states, 2)[0][0]
    low, high = interval_of_change(one, 0.0, 1.0)
    assert interval_of_change(two, -1.0, 1.0) == pytest.approx((2 * low, 2 * high))
    assert interval_of_change(one, 1.0, 1.0) == (one.change, one.change)
