"""The tensors that a policy loss reads and returns. Shapes: B sequences, T positions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch

MAX_LOG_RATIO = 20.0
"""|log ratio| is clamped before exp() so that one broken token cannot make infinities (e^20 = 5e8)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LossInputs:
    """Aligned token tensors of one microbatch."""

    policy_logprobs: torch.Tensor
    """By the trainer now, with gradient. [B, T]"""
    behaviour_logprobs: torch.Tensor
    """By the engine while sampling. [B, T]"""
    advantages: torch.Tensor
    """One per sequence [B], or one per token [B, T]."""
    mask: torch.Tensor
    """1.0 on the tokens of the policy-gradient term. [B, T]"""
    clip_low: float
    """Ratios below 1 - clip_low are clipped."""
    clip_high: float
    """Ratios above 1 + clip_high are clipped."""
    dual_clip: float = 0.0
    """Bound on the ratio where the advantage is negative; 0 = none."""

    def token_advantages(self) -> torch.Tensor:
        """Broadcastable to [B, T]."""
        return self.advantages[:, None] if self.advantages.ndim == 1 else self.advantages


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenLosses:
    """What a policy loss returns; all [B, T], 0 where the mask is 0."""

    loss: torch.Tensor
    importance_ratio: torch.Tensor
    """Detached."""
    is_clipped: torch.Tensor
    """1.0 where the clip took the gradient away. Detached."""


class PolicyLoss(Protocol):
    def __call__(self, inputs: LossInputs) -> TokenLosses: ...


def log_ratio(inputs: LossInputs) -> torch.Tensor:
    """policy - behaviour logprobs, 0 off the mask (behaviour logprobs may be NaN there). [B, T]"""
    on = inputs.mask > 0
    behaviour = torch.where(on, inputs.behaviour_logprobs, torch.zeros_like(inputs.behaviour_logprobs))
    policy = torch.where(on, inputs.policy_logprobs, torch.zeros_like(inputs.policy_logprobs))
    return policy - behaviour
