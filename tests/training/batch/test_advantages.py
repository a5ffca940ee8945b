"""Advantages: relative to real members of the group."""

from __future__ import annotations

import math

import pytest
import torch

from training.batch.advantages import group_advantages, mean_and_std


def test_one_success_among_eight_has_the_known_pull() -> None:
    rewards = dict.fromkeys(range(8), 0.0) | {3: 1.0}
    found = group_advantages(rewards, scale=True)
    assert found is not None
    assert found.advantages[3] == pytest.approx(7 / math.sqrt(8), rel=1e-4)
    assert found.advantages[0] == pytest.approx(-1 / math.sqrt(8), rel=1e-4)


@pytest.mark.parametrize("scale", [True, False])
def test_advantages_of_a_group_sum_to_zero(scale: bool) -> None:
    found = group_advantages({1: 0.1, 2: 0.9, 3: 0.35}, scale=scale)
    assert found is not None
    assert sum(found.advantages.values()) == pytest.approx(0, abs=1e-9)


def test_without_scale_they_are_differences_of_rewards() -> None:
    found = group_advantages({1: 2.0, 2: 0.0}, scale=False)
    assert found is not None
    assert found.advantages == {1: 1.0, 2: -1.0}


def test_equal_rewards_give_zero_advantages_not_noise() -> None:
    found = group_advantages({1: 0.1 + 0.2, 2: 0.3}, scale=True)
    assert found is not None
    assert found.has_zero_variance
    assert found.advantages == {1: 0.0, 2: 0.0}


@pytest.mark.parametrize("floor", [0.0, 0.25])
def test_a_floor_changes_only_groups_whose_rewards_are_closer(floor: float) -> None:
    """Without one: slime's formula, (R - mean) / (unbiased std + 1e-6)."""
    for rewards in ([0.0, 1.0, 0.0, 0.3], [0.5, 0.52, 0.5, 0.51], [1.0, 1.0, 1.0, 1.00001]):
        values = torch.tensor(rewards, dtype=torch.float64)
        spread = max(float(values.std()), floor)
        expected = ((values - values.mean()) / (spread + 1e-6)).tolist()
        found = group_advantages(dict(enumerate(rewards)), scale=True, floor=floor)
        assert found is not None
        assert list(found.advantages.values()) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("rewards", [{}, {1: 1.0}])
def test_a_group_of_fewer_than_two_members_has_no_advantages(rewards: dict[int, float]) -> None:
    assert group_advantages(rewards, scale=True) is None


def test_std_is_unbiased() -> None:
    assert mean_and_std([1.0, 3.0]) == pytest.approx((2.0, math.sqrt(2)))
    assert mean_and_std([5.0]) == (5.0, 0.0)
