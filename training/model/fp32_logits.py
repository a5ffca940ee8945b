"""Logits in fp32 from weights and hidden states in bfloat16.

A matrix product adds up in fp32; what costs digits is writing its result in bfloat16, where neighbours are
2^-8 of a logit's size apart: 0.06 to 0.12 nats at the 16 and more that a sure model gives its token. The
GPU's product writes fp32 instead, which also saves the copy. `training.sampler.sglang.served_model` does
the same.
"""

import types
from typing import Any

import torch
from torch import nn

HALF = (torch.bfloat16, torch.float16)


def compute_logits(hidden: torch.Tensor, lm_head: nn.Module, *, in_fp32: bool) -> torch.Tensor:
    """Logits of hidden states. [..., hidden] -> [..., vocabulary], fp32

    `in_fp32` False rounds them to the weights' type first, as transformers and a plain SGLang do.
    """
    if in_fp32 and _is_half(hidden, lm_head):
        flat = _Fp32Product.apply(hidden.flatten(0, -2), lm_head.weight)
        return flat.unflatten(0, hidden.shape[:-1])
    return lm_head(hidden).float()


def _is_half(hidden: torch.Tensor, lm_head: nn.Module) -> bool:
    """Whether the head is a bare matrix of the half precision that its input has."""
    is_bare = isinstance(lm_head, nn.Linear) and lm_head.bias is None
    return is_bare and hidden.dtype in HALF and hidden.dtype == lm_head.weight.dtype


def use_fp32_logits(model: Any) -> None:
    """Make transformers' own forward of `model` return logits in fp32."""
    lm_head = model.lm_head
    usual = lm_head.forward

    def forward(self: nn.Linear, hidden: torch.Tensor) -> torch.Tensor:
        if not _is_half(hidden, self):
            return usual(hidden)
        return fp32_product(hidden.flatten(0, -2), self.weight).unflatten(0, hidden.shape[:-1])

    lm_head.forward = types.MethodType(forward, lm_head)


def fp32_product(hidden: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """hidden weight^T of half precision, in fp32. No gradient. [N, hidden], [V, hidden] -> [N, V]"""
    if hidden.device.type == "cuda":
        return torch.mm(hidden, weight.T, out_dtype=torch.float32)
    return hidden.float() @ weight.float().T  # the CPU has no such product


class _Fp32Product(torch.autograd.Function):
    """`fp32_product`; gradients in half precision, as autograd's own product has them."""

    @staticmethod
    def forward(context: Any, hidden: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        context.save_for_backward(hidden, weight)
        return fp32_product(hidden, weight)

    @staticmethod
    def backward(context: Any, gradient: torch.Tensor) -> tuple[torch.Tensor | None, torch.Tensor | None]:
        hidden, weight = context.saved_tensors
        half = gradient.to(hidden.dtype)
        of_hidden = half @ weight if context.needs_input_grad[0] else None
        of_weight = half.T @ hidden if context.needs_input_grad[1] else None
        return of_hidden, of_weight
