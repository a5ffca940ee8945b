"""All weights of a sharded model, whole, for comparisons in tests."""

from __future__ import annotations

import torch
from torch import nn

from training.distributed.fsdp import full


def full_state(model: nn.Module) -> dict[str, torch.Tensor]:
    """All weights gathered, on the CPU; may share memory with the model. A collective; tied weights once."""
    state: dict[str, torch.Tensor] = {}
    for name, parameter in model.named_parameters():
        state[name] = full(parameter.detach()).cpu().contiguous()
    return state
