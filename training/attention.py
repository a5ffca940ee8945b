"""Attention over packed sequences: sequences laid end to end, none of which sees another.

`packed_attention` is the one function behind `optimiser.packing`; it stands in transformers' table of
attention functions, so the model code stays as it is. Paths:
- CUDA, bf16 or fp16: `torch.nn.attention.varlen.varlen_attn` (flash attention with sequence bounds);
- anything else: one `scaled_dot_product_attention` per sequence, the always-correct path.
Both are block-diagonal and causal without ever making a [T, T] mask. A batch without sequence bounds (the
canary, padded batches) takes transformers' own SDPA path.
Shapes: 1 row, H heads, T tokens of all sequences, D head width.
"""

from __future__ import annotations

import inspect
import types
from typing import Any

import torch
from torch.nn import functional
from torch.nn.attention.varlen import varlen_attn
from transformers import AttentionInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.models.qwen3_vl.modeling_qwen3_vl import (
    Qwen3VLVisionAttention,
    apply_rotary_pos_emb_vision,
)

NAME = "deskhand_packed"
HALF = (torch.bfloat16, torch.float16)
TAKES_GQA = "enable_gqa" in inspect.signature(varlen_attn).parameters
"""Newer versions of torch want to be told that key heads are fewer; older ones see it from the shapes."""


def use_packed_attention(model: torch.nn.Module) -> None:
    """Make the text blocks of `model` read sequence bounds."""
    AttentionInterface.register(NAME, packed_attention)
    # A name without a mask function: transformers makes no mask at all, which is what is wanted here.
    model.config.text_config._attn_implementation = NAME
    model.model.language_model.config._attn_implementation = NAME


def use_packed_vision(model: torch.nn.Module) -> None:
    """Make the vision blocks of `model` attend within all images in one call."""
    for module in model.modules():
        if isinstance(module, Qwen3VLVisionAttention):
            module.forward = types.MethodType(packed_vision_attention, module)


def packed_attention(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    **kwargs: Any,
) -> tuple[torch.Tensor, None]:
    """query [1, H, T, D], key and value [1, H_kv, T, D] -> [1, T, H, D]. The bounds are `cu_seq_lens_q`."""
    bounds = kwargs.get("cu_seq_lens_q")
    if bounds is None:
        return sdpa_attention_forward(
            module, query, key, value, attention_mask, dropout=dropout, scaling=scaling, is_causal=True
        )
    assert len(query) == 1, "packed sequences are one row"
    # The kernels want one dtype; norms and rotations may have left queries and keys in a wider one.
    parts = [part[0].transpose(0, 1).to(value.dtype) for part in (query, key, value)]
    out = attend_within(*parts, bounds, kwargs["max_length_q"], scaling=scaling, is_causal=True)
    return out[None], None


def attend_within(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    bounds: torch.Tensor,
    max_length: int,
    *,
    scaling: float | None,
    is_causal: bool,
) -> torch.Tensor:
    """Attention inside each of the sequences that `bounds` [N + 1] marks. [T, H, D] -> [T, H, D]"""
    grouped = query.shape[1] != key.shape[1]
    if query.is_cuda and query.dtype in HALF:
        window = (-1, 0) if is_causal else (-1, -1)
        told: dict[str, Any] = {"enable_gqa": grouped} if TAKES_GQA else {}
        return varlen_attn(
            query.contiguous(), key.contiguous(), value.contiguous(), bounds, bounds, max_length, max_length,
            scale=scaling, window_size=window, **told,
        )  # fmt: skip
    lengths = bounds.diff().tolist()
    pieces = zip(*(part.split(lengths) for part in (query, key, value)), strict=True)
    attended = [
        functional.scaled_dot_product_attention(
            *(part.transpose(0, 1)[None] for part in piece),
            is_causal=is_causal,
            scale=scaling,
            enable_gqa=grouped,
        )[0].transpose(0, 1)
        for piece in pieces
    ]
    return torch.cat(attended)


def packed_vision_attention(
    self: Qwen3VLVisionAttention,
    hidden_states: torch.Tensor,
    cu_seqlens: torch.Tensor,
    position_embeddings=None,
    max_seqlen: int | None = None,
    **kwargs: Any,
) -> torch.Tensor:
    """As the original, but all images in one call instead of a loop over them. [P, hidden] -> [P, hidden]"""
    patches = len(hidden_states)
    query, key, value = self.qkv(hidden_states).reshape(patches, 3, self.num_heads, -1).unbind(1)
    query, key = apply_rotary_pos_emb_vision(query, key, *position_embeddings)
    longest = int(cu_seqlens.diff().max()) if max_seqlen is None else max_seqlen
    query, key = query.to(value.dtype), key.to(value.dtype)  # the rotation is computed in fp32
    out = attend_within(query, key, value, cu_seqlens.int(), longest, scaling=self.scaling, is_causal=False)
    return self.proj(out.reshape(patches, -1))
