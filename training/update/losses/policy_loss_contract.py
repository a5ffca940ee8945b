"""The tensors that a policy loss reads and returns. Shapes: B sequences, T positions."""

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
    old_logprobs: torch.Tensor
    """What ratios are taken against: by the engine while sampling, or by the trainer before the step's first
    update (`algorithm.old_logprobs`). [B, T]"""
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
    trajectory_tokens: torch.Tensor | None = None
    """Loss tokens of the whole trajectory of each sequence. [B]"""
    rest_log_ratio: torch.Tensor | None = None
    """Sum of the log ratios of the trajectory's other sequences, no gradient. [B]"""

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
    """policy - old logprobs, 0 off the mask. [B, T]"""
    return masked_difference(inputs.policy_logprobs, inputs.old_logprobs, inputs.mask)


def trajectory_log_ratio(inputs: LossInputs) -> torch.Tensor:
    """Sum of the log ratios of each sequence's trajectory. [B]

    Where the history is a window, a trajectory of N tokens is several sequences. One of n tokens knows the
    sum of the others' log ratios as a number (`update.scoring`), so the value is right in each; and because
    its loss counts n / N (in every aggregation but `sequence_mean`, which the config refuses there), the
    gradient through its own log ratio is taken N / n times. The sequences' gradients then add up to that of
    the whole trajectory.
    """
    own = (log_ratio(inputs) * inputs.mask).sum(dim=-1)
    if inputs.trajectory_tokens is None or inputs.rest_log_ratio is None:
        return own
    times = inputs.trajectory_tokens / inputs.mask.sum(dim=-1).clamp(min=1.0)
    return (own + inputs.rest_log_ratio).detach() + times * (own - own.detach())


def masked_difference(these: torch.Tensor, those: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """these - those, 0 off the mask, where either may be NaN. [B, T]"""
    on, nothing = mask > 0, torch.zeros_like(mask)
    return torch.where(on, these, nothing) - torch.where(on, those, nothing)
