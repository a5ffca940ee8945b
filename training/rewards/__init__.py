"""Rewards: one pure function over turns and score; its terms, and the presets that add them up."""

from training.rewards.compute import Reward, compute_reward, rescore

__all__ = ["Reward", "compute_reward", "rescore"]
