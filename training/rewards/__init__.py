"""Rewards: one file per term, presets as tables, one pure function over turns and score."""

from training.rewards.compute import Reward, compute_reward, rescore
from training.rewards.presets import PRESETS

__all__ = ["PRESETS", "Reward", "compute_reward", "rescore"]
