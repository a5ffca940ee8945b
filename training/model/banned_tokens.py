"""Tokens that the engine never samples have no probability, in the engine and in the trainer alike."""

import torch

BANNED_LOGIT = -1e9
"""Of a token without probability; not -inf: p log p stays finite. Nats."""


def without_tokens(logits: torch.Tensor, banned_ids: list[int]) -> torch.Tensor:
    """Logits in which the banned tokens have no probability. [..., V]"""
    ids = torch.tensor(banned_ids, dtype=torch.long, device=logits.device)
    return logits.index_fill(-1, ids, BANNED_LOGIT)
