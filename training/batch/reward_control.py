"""Rewards of control runs: numbers that say nothing of what the policy did, so a run must learn nothing.

    none      rewards as they are
    shuffled  permuted among the scored members of the group: mean and spread stay
    random    a fair coin per scored member, 0 or 1 (Spurious Rewards, arXiv 2506.10947)

Only advantages are made of them. What is stored, shown and measured stays the true reward.
"""

import random
from collections.abc import Mapping

from training.contracts.config import RewardControl


def controlled_rewards(
    rewards: Mapping[int, float], control: RewardControl, *, seed: int, group_id: int
) -> dict[int, float]:
    """{trajectory_id: reward} of one group under `control`; the same for the same seed and group."""
    if control == "none":
        return dict(rewards)
    rng = random.Random(f"{seed}/{control}/{group_id}")
    members = sorted(rewards)
    if control == "random":
        return {member: float(rng.getrandbits(1)) for member in members}
    values = [rewards[member] for member in members]
    rng.shuffle(values)
    return dict(zip(members, values, strict=True))
