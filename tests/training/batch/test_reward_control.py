"""Control runs: rewards that say nothing of what was done."""

from __future__ import annotations

from statistics import correlation, mean

from training.batch.reward_control import controlled_rewards

REWARDS = {10: 1.0, 11: 0.0, 12: 0.25, 13: 0.5}


def test_without_a_control_every_member_keeps_its_reward() -> None:
    assert controlled_rewards(REWARDS, "none", seed=0, group_id=1) == REWARDS


def test_shuffled_rewards_are_those_of_the_group_dealt_out_anew() -> None:
    dealt = [controlled_rewards(REWARDS, "shuffled", seed=0, group_id=group) for group in range(400)]
    assert all(sorted(one.values()) == sorted(REWARDS.values()) for one in dealt)
    for member in REWARDS:
        assert abs(mean(one[member] for one in dealt) - mean(REWARDS.values())) < 0.08


def test_random_rewards_are_coins_whatever_was_earned() -> None:
    rewards = {member: float(member % 2) for member in range(2000)}
    coins = controlled_rewards(rewards, "random", seed=0, group_id=1)
    assert set(coins.values()) == {0.0, 1.0}
    assert abs(mean(coins.values()) - 0.5) < 0.05
    assert abs(correlation(list(rewards.values()), list(coins.values()))) < 0.08


def test_a_resumed_step_deals_the_same_and_another_seed_another() -> None:
    first = [controlled_rewards(REWARDS, "shuffled", seed=0, group_id=group) for group in range(20)]
    assert first == [controlled_rewards(REWARDS, "shuffled", seed=0, group_id=group) for group in range(20)]
    assert first != [controlled_rewards(REWARDS, "shuffled", seed=1, group_id=group) for group in range(20)]
