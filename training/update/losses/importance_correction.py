"""Weights for what lies between the policy that sampled and the proximal policy, which updates begin at.

    w_t = exp(proximal_t - behaviour_t)
    none       w_t <- 1
    truncate   w_t <- clip(w_t, low, high)                       token TIS
    mask       w_t <- w_t if low <= w_t <= high else 0           double-sided mask (IcePop)

The decoupled objective of AReaL multiplies a clipped surrogate, whose own ratio is taken against the
proximal policy, with w_t: the clip bounds what the updates of a step may do, w makes up for everything
older, which is another numeric path of the engine, and weights that were older when a token was sampled.
Token level on purpose: a sequence's product of many small gaps leaves any bound, and with it
every long trajectory would be lost.
Sources: decoupled PPO as in AReaL, arXiv 2505.24298, eq. 5; truncated importance sampling, Yao et al.,
"Your Efficient RL Framework Secretly Brings You Off-Policy RL Training" (2025); IcePop, Ring-1T
report, arXiv 2510.18855.
"""

from dataclasses import dataclass

import torch

from training.update.losses.policy_loss_contract import MAX_LOG_RATIO, masked_difference


@dataclass(frozen=True, slots=True, kw_only=True)
class Correction:
    """What lies between the two policies; detached, 0 off the mask."""

    weights: torch.Tensor
    """What the token's loss is multiplied with. [B, T]"""
    raw: torch.Tensor
    """The importance weight before the bounds. [B, T]"""
    is_cut: torch.Tensor
    """1.0 where a bound was at work. [B, T]"""


def correction(
    proximal_logprobs: torch.Tensor,
    behaviour_logprobs: torch.Tensor,
    mask: torch.Tensor,
    *,
    mode: str,
    low: float,
    high: float,
) -> Correction:
    """Weights by `mode`: none, truncate or mask; tensors are [B, T]. Raises KeyError for another mode."""
    gap = masked_difference(proximal_logprobs, behaviour_logprobs, mask).detach()
    raw = gap.clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO).exp() * mask
    outside = ((raw < low) | (raw > high)).to(raw.dtype) * mask
    weights = {
        "none": torch.ones_like(raw),
        "truncate": raw.clamp(low, high),
        "mask": raw * (1 - outside),
    }[mode]
    return Correction(weights=weights * mask, raw=raw, is_cut=outside)
