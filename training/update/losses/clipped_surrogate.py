"""PPO's clipped surrogate, with an optional bound for negative advantages."""

import torch

from training.update.losses.policy_loss_contract import LossInputs, TokenLosses


def clipped_surrogate(ratio: torch.Tensor, inputs: LossInputs) -> TokenLosses:
    """max(-r A, -clip(r, 1 - clip_low, 1 + clip_high) A) per token; `ratio` is [B, T].

    With `dual_clip` c the loss of a token with A < 0 is at most -c A: a token that the policy has already
    made far likelier than the old one cannot push without bound. Source: dual-clip PPO, arXiv 1912.09729.
    """
    advantages = inputs.token_advantages()
    plain = -ratio * advantages
    clipped = -ratio.clamp(1 - inputs.clip_low, 1 + inputs.clip_high) * advantages
    loss, is_clipped = torch.maximum(plain, clipped), clipped > plain
    if inputs.dual_clip > 0:
        bound = torch.where(advantages < 0, -inputs.dual_clip * advantages, torch.inf)
        is_clipped = is_clipped | (loss > bound)
        loss = torch.minimum(loss, bound)
    return TokenLosses(
        loss=loss * inputs.mask,
        importance_ratio=ratio.detach() * inputs.mask,
        is_clipped=is_clipped.to(ratio.dtype).detach() * inputs.mask,
    )
