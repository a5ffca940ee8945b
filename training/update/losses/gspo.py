"""GSPO: the clipped surrogate with one importance ratio per trajectory.

    s   = sum_t m_t (policy_t - old_t) / sum_t m_t        over all tokens of the trajectory
    L_t = max(-exp(s) A, -clip(exp(s), 1 - clip_low, 1 + clip_high) A)     for every token t of the trajectory

Source: Group Sequence Policy Optimization, arXiv 2507.18071, eq. 5 to 7, whose sequence is all that was
sampled for a reward: here a trajectory, also where its history is a window and makes several sequences. The
gradient flows through s. The published clips are 3e-4 and 4e-4, for several updates per batch against the
trainer's own logprobs before the first (`updates_per_batch: 4`, `old_logprobs: recomputed`): an engine's
differ from them by more than that.
"""

import torch

from training.update.losses.clipped_surrogate import clipped_surrogate
from training.update.losses.policy_loss_contract import (
    MAX_LOG_RATIO,
    LossInputs,
    TokenLosses,
    trajectory_log_ratio,
)


def gspo_loss(inputs: LossInputs) -> TokenLosses:
    """Token losses of GSPO, [B, T]; every token of a trajectory has the trajectory's loss."""
    return clipped_surrogate(trajectory_ratio(inputs), inputs)


def trajectory_ratio(inputs: LossInputs) -> torch.Tensor:
    """exp(s) at every token of its trajectory, with gradient. [B, T]"""
    num_tokens = inputs.mask.sum(dim=-1)
    if inputs.trajectory_tokens is not None:
        num_tokens = inputs.trajectory_tokens
    mean_log_ratio = trajectory_log_ratio(inputs) / num_tokens.clamp(min=1.0)
    ratio = mean_log_ratio.clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO).exp()
    return ratio[:, None].expand_as(inputs.mask)
