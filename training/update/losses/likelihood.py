"""Negative log-likelihood: for SFT, and for replay entries that no policy sampled.

    L_t = -w policy_t

A human's or an oracle's trajectory has no behaviour logprobs, so no importance ratio exists.
It enters as plain imitation with its own small weight w, and is reported as such.
"""

import torch


def likelihood_loss(policy_logprobs: torch.Tensor, mask: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """NLL per token, 0 where `mask` is 0. policy_logprobs, mask [B, T]; weights [B] -> [B, T]"""
    return -policy_logprobs * mask * weights[:, None]
