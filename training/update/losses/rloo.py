"""RLOO: REINFORCE on whole trajectories with a leave-one-out baseline.

    A_i = R_i - mean_{j != i} R_j                          (`algorithm.baseline: leave_one_out`)
    r   = exp(sum_t m_t (policy_t - old_t))                over all tokens of the trajectory
    L_t = max(-r A, -clip(r, 1 - clip_low, 1 + clip_high) A)     for every token t of the trajectory

All completions of a trajectory are one action, so the ratio is the whole trajectory's (a product, not
GSPO's mean) and every trajectory counts once whatever its length: `algorithm.aggregation:
trajectory_mean`. On policy (r = 1) the gradient is REINFORCE's, -A grad(sum_t policy_t).
Source: Back to Basics, arXiv 2402.14740; the clip as in TRL's RLOOTrainer. The product
of many small gaps leaves the clip soon: use it on policy, with short completions.
"""

from training.update.losses.clipped_surrogate import clipped_surrogate
from training.update.losses.policy_loss_contract import (
    MAX_LOG_RATIO,
    LossInputs,
    TokenLosses,
    trajectory_log_ratio,
)


def rloo_loss(inputs: LossInputs) -> TokenLosses:
    """Token losses of RLOO, [B, T]; every token of a trajectory has the trajectory's loss."""
    ratio = trajectory_log_ratio(inputs).clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO).exp()
    return clipped_surrogate(ratio[:, None].expand_as(inputs.mask), inputs)
