"""KL to a frozen reference, estimator k3.

    x = policy - reference,   k3 = exp(-x) - 1 + x  >= 0

Source: Schulman, "Approximating KL divergence" (2020). k1 (= x) as a loss has zero expected
gradient, so it is not offered. x is clamped to +-10 as in slime's low-variance KL.
"""

from __future__ import annotations

import torch

MAX_LOG_DIFFERENCE = 10.0


def k3_kl(
    policy_logprobs: torch.Tensor, reference_logprobs: torch.Tensor, mask: torch.Tensor
) -> torch.Tensor:
    """k3 per token, 0 where `mask` is 0. [B, T]"""
    difference = (policy_logprobs - reference_logprobs) * mask
    x = difference.clamp(-MAX_LOG_DIFFERENCE, MAX_LOG_DIFFERENCE)
    return (torch.exp(-x) - 1 + x) * mask
