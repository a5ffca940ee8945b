"""Which outcomes an update tells from the rest: those that it imitates, or pays."""

from training.contracts.config.algorithm import AlgorithmConfig, imitates_successes
from training.contracts.config.reward_presets import RewardConfig
from training.contracts.outcome import SuccessRule, is_counted
from training.contracts.types import Trajectory
from training.rewards.compute import pays_at_limit


def success_rule(algorithm: AlgorithmConfig, rewards: RewardConfig) -> SuccessRule:
    """`ENDED` where an update gains nothing from a state that a limit ended."""
    if imitates_successes(algorithm) or not pays_at_limit(rewards):
        return SuccessRule.ENDED
    return SuccessRule.STATE


def counted_score(trajectory: Trajectory, rule: SuccessRule) -> float:
    """The task score, in [0, 1]; 0 without one, and under `ENDED` of what a limit ended."""
    return (trajectory.score or 0.0) if is_counted(trajectory.status, rule) else 0.0
