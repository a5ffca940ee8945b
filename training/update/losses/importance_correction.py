"""Corrections for what lies between the engine that sampled and the trainer that learns.

    w_t = exp(sg[policy_t] - behaviour_t)
    truncate   w_t <- clip(w_t, low, high)                       token TIS
    mask       w_t <- w_t if low <= w_t <= high else 0           double-sided mask (IcePop)
    L_t <- w_t L_t, where L's own ratio is taken against sg[policy] instead of behaviour

w holds both causes: another numeric path of the engine, and weights that were older when a token
was sampled. Because there is one optimiser step per batch, the policy before the step is the
policy now, so that the "proximal" logprobs of decoupled PPO cost no second forward pass.
Token level on purpose: a sequence's product of many small gaps leaves any bound, and with it
every long trajectory would be lost.
Sources: truncated importance sampling, Yao et al., "Your Efficient RL Framework Secretly Brings
You Off-Policy RL Training" (2025); decoupled PPO as in AReaL, arXiv 2505.24298; IcePop, Ring-1T
report, arXiv 2510.18855.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from training.update.losses.policy_loss_contract import MAX_LOG_RATIO, LossInputs, log_ratio


@dataclass(frozen=True, slots=True, kw_only=True)
class Corrected:
    """Inputs whose ratio starts at 1, and the weight of every token."""

    inputs: LossInputs
    weights: torch.Tensor
    """What the token's loss is multiplied with. Detached. [B, T]"""
    raw: torch.Tensor
    """The same before the bounds, 0 off the mask. [B, T]"""
    is_cut: torch.Tensor
    """1.0 where a bound was at work. [B, T]"""


def correct(inputs: LossInputs, mode: str, low: float, high: float) -> Corrected:
    """`inputs` with `mode`: truncate or mask. Raises KeyError for another one."""
    raw = log_ratio(inputs).detach().clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO).exp() * inputs.mask
    outside = ((raw < low) | (raw > high)).to(raw.dtype) * inputs.mask
    weights = {"truncate": raw.clamp(low, high), "mask": raw * (1 - outside)}[mode]
    return Corrected(
        inputs=replace(inputs, behaviour_logprobs=inputs.policy_logprobs.detach()),
        weights=weights * inputs.mask,
        raw=raw,
        is_cut=outside,
    )
