"""Gated delta nets over rows of sequences, none of which sees another's state.

Qwen3.5's blocks of this kind read the last four tokens (a convolution) and a state that every token decays
and corrects. Both begin anew where a packed sequence begins. Paths:
- CUDA with fla-core (flash-linear-attention): one call for all sequences, which knows their bounds;
- anything else, and Hopper with a Triton whose gradients fla-core refuses: one call of transformers' own rule
  per sequence, the always-correct path, slow on a GPU.
Source: Gated Delta Networks, arXiv 2412.06464. Shapes: B rows, T tokens, H value heads, D head width.
"""

import functools
import importlib
import importlib.util
import inspect
import logging
import os
import types
from typing import Any

import torch
from packaging.version import Version
from torch.nn import functional
from transformers.activations import ACT2FN
from transformers.models.qwen3_5.modeling_qwen3_5 import l2norm, torch_chunk_gated_delta_rule

from training.model.packed_attention import Bounds

log = logging.getLogger(__name__)

PLAIN_RULE: Any = inspect.unwrap(torch_chunk_gated_delta_rule)
"""Without the package's kernels, which its name stands for where they can be imported."""
HOPPER = 9
"""Major compute capability of H100 and H200."""


@functools.cache
def has_kernels() -> bool:
    """Whether fla-core is installed and computes gradients on this GPU."""
    if importlib.util.find_spec("fla") is None:
        return False
    triton = importlib.import_module("triton").__version__  # fla-core needs it
    has_tilelang = importlib.util.find_spec("tilelang") is not None
    if not are_refused(torch.cuda.get_device_capability(), triton, has_tilelang=has_tilelang):
        # Else every process tries all variants of the kernels anew, in its first step.
        os.environ.setdefault("TRITON_CACHE_AUTOTUNING", "1")
        return True
    log.warning(
        "fla-core refuses Triton %s on this GPU: gated delta nets run in plain torch, which is slow. "
        "Install torch 2.13, which brings Triton 3.7.1, or the package tilelang.",
        triton,
    )
    return False


def are_refused(capability: tuple[int, int], triton: str, *, has_tilelang: bool) -> bool:
    """Whether the first backward pass would be refused, as fla-core 0.6's `chunk_bwd_dqkwg` does it."""
    is_wrong = Version("3.4") <= Version(triton) < Version("3.7.1")
    return capability[0] == HOPPER and is_wrong and not has_tilelang


def use_bounded_state(text: Any) -> None:
    """Make the blocks of a text model that keep a state read sequence bounds."""
    for layer in text.layers:
        if hasattr(layer, "linear_attn"):
            layer.linear_attn.act = ACT2FN[layer.linear_attn.activation]
            layer.linear_attn.forward = types.MethodType(delta_net, layer.linear_attn)


def delta_net(self: Any, hidden_states: torch.Tensor, packed: Bounds | None = None, **_: Any) -> torch.Tensor:
    """In place of transformers' forward, without a cache. [B, T, hidden] -> [B, T, hidden]"""
    mixed = self.in_proj_qkv(hidden_states)
    mixed = self.act(convolved(mixed, self.conv1d.weight, _since(hidden_states, packed))).to(mixed.dtype)
    keys, values = (self.num_k_heads, self.head_k_dim), (self.num_v_heads, self.head_v_dim)
    query, key, value = (
        part.unflatten(-1, shape)
        for part, shape in zip(
            mixed.split([self.key_dim, self.key_dim, self.value_dim], dim=-1),
            (keys, keys, values),
            strict=True,
        )
    )
    # Of unit length here: the kernels' own normalisation compiles anew for every range of lengths.
    query, key = (l2norm(part.float()).to(part.dtype) for part in (query, key))
    times = self.num_v_heads // self.num_k_heads
    query, key = (part.repeat_interleave(times, dim=2) if times > 1 else part for part in (query, key))
    decay = functional.softplus(self.in_proj_a(hidden_states).float() + self.dt_bias)
    decay = -self.A_log.float().exp() * decay
    seen = delta_rule(query, key, value, decay, self.in_proj_b(hidden_states).sigmoid(), packed)
    gate = self.in_proj_z(hidden_states).unflatten(-1, values)
    return self.out_proj(self.norm(seen.flatten(0, 2), gate.flatten(0, 2)).view(*mixed.shape[:2], -1))


def convolved(mixed: torch.Tensor, weight: torch.Tensor, since: torch.Tensor) -> torch.Tensor:
    """Each channel's sum over the last tokens of its own sequence, fp32. [B, T, C], weight [C, 1, width]

    Sums of shifted copies: compiled they are one pass, where a convolution of single channels is slow.
    """
    wide, taps = mixed.float(), weight.float()[:, 0].flip(-1).unbind(-1)
    total = wide * taps[0]
    for back, tap in enumerate(taps[1:], 1):
        total = total + torch.where((since >= back)[:, None], wide.roll(back, dims=1), 0.0) * tap
    return total


@torch.compiler.disable  # bounds are no tensors
def _since(hidden: torch.Tensor, packed: Bounds | None) -> torch.Tensor:
    """How many tokens of its own sequence stand before each one. [T]"""
    place = torch.arange(hidden.shape[1], device=hidden.device)
    if packed is None:
        return place
    starts = packed.starts.to(place.dtype)
    return place - starts[torch.searchsorted(starts, place, right=True) - 1]


@torch.compiler.disable  # what it does depends on the lengths: no graph per layout
def delta_rule(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    decay: torch.Tensor,
    beta: torch.Tensor,
    packed: Bounds | None,
) -> torch.Tensor:
    """What the state of each sequence answers.

    query, key (of unit length), value [B, T, H, D], decay, beta [B, T, H]
    """
    if query.is_cuda and has_kernels():
        from fla.ops.gated_delta_rule import chunk_gated_delta_rule

        bounds = packed.wide if packed else None
        found, _ = chunk_gated_delta_rule(query, key, value, decay, beta, cu_seqlens=bounds)
        return found
    parts = (query, key, value, decay, beta)
    lengths = packed.lengths if packed else [query.shape[1]]
    pieces = zip(*(part.split(lengths, dim=1) for part in parts), strict=True)
    return torch.cat([_of_one(*piece) for piece in pieces], dim=1)


def _of_one(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, decay: torch.Tensor, beta: torch.Tensor
) -> torch.Tensor:
    found, _ = PLAIN_RULE(query, key, value, decay, beta)
    return found
