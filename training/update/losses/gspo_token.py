"""GSPO-token: the value of GSPO's ratio, with credit token by token.

    s   = sum_t m_t (policy_t - old_t) / sum_t m_t        over all tokens of the trajectory
    r_t = sg[exp(s)] exp(policy_t - sg[policy_t])
    L_t = max(-r_t A_t, -clip(r_t, 1 - clip_low, 1 + clip_high) A_t)

sg = no gradient. All tokens of a trajectory have the same ratio (and are clipped together), but
the gradient of a token is that of its own logprob, so advantages may differ between turns. With
equal advantages its gradient is GSPO's.
Source: Group Sequence Policy Optimization, arXiv 2507.18071, section 4.3.
"""

from training.update.losses.clipped_surrogate import clipped_surrogate
from training.update.losses.gspo import trajectory_ratio
from training.update.losses.policy_loss_contract import LossInputs, TokenLosses


def gspo_token_loss(inputs: LossInputs) -> TokenLosses:
    """Token losses of GSPO-token, [B, T]."""
    policy = inputs.policy_logprobs
    # exp(0) = 1: it adds no value, only each token's own gradient.
    own = (policy - policy.detach()).exp()
    return clipped_surrogate(trajectory_ratio(inputs).detach() * own, inputs)
