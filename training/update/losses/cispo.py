"""CISPO: the importance weight is clipped, the token's gradient never is.

    w_t = sg[clip(exp(policy_t - old_t), 1 - clip_low, 1 + clip_high)]
    L_t = -w_t A_t policy_t

sg = no gradient. Rare tokens (the first words of a changed mind) have large ratios; PPO's clip
takes their gradient away, CISPO only bounds their weight. `clip_low: 1` leaves only the upper
bound, as the authors do.
Source: MiniMax-M1, arXiv 2506.13585, section 3.1.
"""

import torch

from training.update.losses.policy_loss_contract import MAX_LOG_RATIO, LossInputs, TokenLosses, log_ratio


def cispo_loss(inputs: LossInputs) -> TokenLosses:
    """Token losses of CISPO, [B, T]. `is_clipped` marks bounded weights; their gradients stay."""
    ratio = log_ratio(inputs).detach().clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO).exp()
    weight = ratio.clamp(1 - inputs.clip_low, 1 + inputs.clip_high)
    on = inputs.mask > 0
    policy = torch.where(on, inputs.policy_logprobs, torch.zeros_like(inputs.policy_logprobs))
    return TokenLosses(
        loss=-weight * inputs.token_advantages() * policy * inputs.mask,
        importance_ratio=ratio * inputs.mask,
        is_clipped=(weight != ratio).to(ratio.dtype) * inputs.mask,
    )
