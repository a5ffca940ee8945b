"""RLOO: REINFORCE on whole trajectories with a leave-one-out baseline.

    A_i = R_i - mean_{j != i} R_j                          (`algorithm.baseline: leave_one_out`)
    r   = exp(sum_t m_t (policy_t - old_t))                over all tokens of the trajectory
    L_t = max(-r A, -clip(r, 1 - clip_low, 1 + clip_high) A)     for every token t of the trajectory

All completions of a trajectory are one action, so the ratio is the whole trajectory's (a product, not
GSPO's mean) and every trajectory counts once whatever its length: `algorithm.aggregation:
trajectory_mean`. On policy (r = 1) the gradient is REINFORCE's, -A grad(sum_t policy_t).

Where the history is a window, a trajectory of N tokens is several sequences. One of n tokens knows the sum of
the others' log ratios as a number (`update.scoring`), so r is right in each; and because trajectory_mean
counts its loss n / N, the gradient through its own log ratio is taken N / n times. The sequences' gradients
then add up to that of the one action.
Source: Back to Basics, arXiv 2402.14740; the clip as in TRL's RLOOTrainer. The product
of many small gaps leaves the clip soon: use it on policy, with short completions.
"""

from __future__ import annotations

from training.update.losses.clipped_surrogate import clipped_surrogate
from training.update.losses.policy_loss_contract import MAX_LOG_RATIO, LossInputs, TokenLosses, log_ratio


def rloo_loss(inputs: LossInputs) -> TokenLosses:
    """Token losses of RLOO, [B, T]; every token of a trajectory has the trajectory's loss."""
    own = (log_ratio(inputs) * inputs.mask).sum(dim=-1)
    total = own
    if inputs.trajectory_tokens is not None and inputs.rest_log_ratio is not None:
        times = inputs.trajectory_tokens / inputs.mask.sum(dim=-1).clamp(min=1.0)
        total = (own + inputs.rest_log_ratio).detach() + times * (own - own.detach())
    ratio = total.clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO).exp()
    return clipped_surrogate(ratio[:, None].expand_as(inputs.mask), inputs)
