"""KL to a frozen reference: three estimators from samples of the policy.

    x = policy - reference
    k1 = x                      unbiased, can be negative
    k2 = x^2 / 2                its gradient is that of k1 as a penalty
    k3 = exp(-x) - 1 + x >= 0   unbiased, low variance

k2 and k3 are terms of the loss. k1 as a loss has zero expected gradient (the mean of the score
function), so it enters where it works: as a penalty on each token's advantage,
A_t <- A_t - coefficient sg[k1_t].
Source: Schulman, "Approximating KL divergence" (2020). x is clamped to +-10 as in slime's
low-variance KL.
"""

from collections.abc import Callable

import torch

MAX_LOG_DIFFERENCE = 10.0


def k1_kl(
    policy_logprobs: torch.Tensor, reference_logprobs: torch.Tensor, mask: torch.Tensor
) -> torch.Tensor:
    """k1 per token, 0 where `mask` is 0. [B, T]"""
    return _difference(policy_logprobs, reference_logprobs, mask)


def k2_kl(
    policy_logprobs: torch.Tensor, reference_logprobs: torch.Tensor, mask: torch.Tensor
) -> torch.Tensor:
    """k2 per token, 0 where `mask` is 0. [B, T]"""
    return _difference(policy_logprobs, reference_logprobs, mask).square() / 2


def k3_kl(
    policy_logprobs: torch.Tensor, reference_logprobs: torch.Tensor, mask: torch.Tensor
) -> torch.Tensor:
    """k3 per token, 0 where `mask` is 0. [B, T]"""
    x = _difference(policy_logprobs, reference_logprobs, mask)
    return (torch.exp(-x) - 1 + x) * mask


KL_ESTIMATORS: dict[str, Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "k1": k1_kl,
    "k2": k2_kl,
    "k3": k3_kl,
}


def _difference(policy: torch.Tensor, reference: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return ((policy - reference) * mask).clamp(-MAX_LOG_DIFFERENCE, MAX_LOG_DIFFERENCE)
