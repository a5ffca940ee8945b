"""Attention over packed sequences: sequences laid end to end, none of which sees another.

`packed_attention` is the one function behind `optimiser.packing`; it stands in transformers' table of
attention functions, so the model code stays as it is. Paths:
- CUDA, bf16 or fp16, long sequences: cuDNN's attention, one call per sequence, or one for all when they are
  equally long. On Hopper it is twice as fast as flash attention 2, but builds a plan for every new length:
  collation rounds lengths up.
- CUDA, bf16 or fp16, short sequences: `torch.nn.attention.varlen.varlen_attn` (flash attention with bounds);
- anything else: one `scaled_dot_product_attention` per sequence, the always-correct path.
All are block-diagonal and causal without ever making a [T, T] mask. A batch without sequence bounds (the
canary, padded batches) takes transformers' own SDPA path.
Shapes: 1 row, H heads, T tokens of all sequences, D head width.
"""

import inspect
import types
from collections.abc import Sequence
from typing import Any

import torch
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.varlen import varlen_attn
from transformers import AttentionInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward

NAME = "deskhand_packed"
HALF = (torch.bfloat16, torch.float16)
TAKES_GQA = "enable_gqa" in inspect.signature(varlen_attn).parameters
"""Newer versions of torch need an option where key heads are fewer; older ones see it from the shapes."""
LONG = 1024
"""Mean length from which cuDNN's separate calls beat one call with bounds."""


class Bounds:
    """Where packed sequences lie. A plain object: a compiled block passes it on without looking into it."""

    __slots__ = ("_wide", "lengths", "starts")

    def __init__(self, starts: torch.Tensor, lengths: Sequence[int]) -> None:
        self.starts = starts
        """Where each sequence starts, and the end of the last, int32, on the device. [N + 1]"""
        self.lengths = list(lengths)
        """On the host. [N]"""
        self._wide: torch.Tensor | None = None

    @property
    def wide(self) -> torch.Tensor:
        """`starts` in int64, one object for all blocks: kernels keep what they derive from it by that."""
        if self._wide is None:
            self._wide = self.starts.long()
        return self._wide


def use_packed_attention(model: Any, text: Any) -> None:
    """Make the text blocks of `model`, those of `text`, read sequence bounds."""
    AttentionInterface.register(NAME, packed_attention)
    # A name without a mask function: transformers makes no mask at all, which is what is wanted here.
    model.config.get_text_config()._attn_implementation = NAME
    text.config._attn_implementation = NAME


def use_packed_vision(tower: Any) -> None:
    """Make the blocks of `tower` attend within all images in one call."""
    for block in tower.blocks:
        block.attn.forward = types.MethodType(packed_vision_attention, block.attn)


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
    """query [1, H, T, D], key and value [1, H_kv, T, D] -> [1, T, H, D]. The `Bounds` are `packed`."""
    bounds = kwargs.get("packed")
    if bounds is None:
        return sdpa_attention_forward(
            module, query, key, value, attention_mask, dropout=dropout, scaling=scaling, is_causal=True
        )
    assert len(query) == 1, "packed sequences are one row"
    # The kernels want one dtype; norms and rotations may have left queries and keys in a wider one.
    # Only views: the gradient of indexing the row would be a full copy into zeros, thrice per block.
    parts = [part.transpose(1, 2).flatten(0, 1).to(value.dtype) for part in (query, key, value)]
    out = attend_within(*parts, bounds, scaling=scaling, is_causal=True)
    return out[None], None


@torch.compiler.disable  # what it does depends on the lengths: no graph per layout
def attend_within(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    bounds: Bounds,
    *,
    scaling: float | None,
    is_causal: bool,
) -> torch.Tensor:
    """Attention inside each of the sequences of `bounds`. [T, H, D] -> [T, H, D]"""
    options = {"is_causal": is_causal, "scale": scaling, "enable_gqa": query.shape[1] != key.shape[1]}
    if query.is_cuda and query.dtype in HALF:
        return _attend_on_gpu(query, key, value, bounds, options)
    return _attend_each(query, key, value, bounds.lengths, options)


def _attend_on_gpu(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, bounds: Bounds, options: dict[str, Any]
) -> torch.Tensor:
    lengths = bounds.lengths
    if sum(lengths) >= LONG * len(lengths):
        with sdpa_kernel([SDPBackend.CUDNN_ATTENTION, SDPBackend.FLASH_ATTENTION], set_priority=True):
            if len(set(lengths)) == 1:
                return _attend_all(query, key, value, len(lengths), options)
            return _attend_each(query, key, value, lengths, options)
    window = (-1, 0) if options["is_causal"] else (-1, -1)
    extra: dict[str, Any] = {"enable_gqa": options["enable_gqa"]} if TAKES_GQA else {}
    # One tensor, although its annotation also names the pair that `return_aux` gives.
    attended: Any = varlen_attn(
        query.contiguous(), key.contiguous(), value.contiguous(), bounds.starts, bounds.starts,
        max(lengths), max(lengths), scale=options["scale"], window_size=window, **extra,
    )  # fmt: skip
    return attended


def _attend_all(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, count: int, options: dict[str, Any]
) -> torch.Tensor:
    """`count` sequences of one length as a batch."""
    parts = (part.unflatten(0, (count, -1)).transpose(1, 2) for part in (query, key, value))
    return functional.scaled_dot_product_attention(*parts, **options).transpose(1, 2).flatten(0, 1)


def _attend_each(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    lengths: Sequence[int],
    options: dict[str, Any],
) -> torch.Tensor:
    pieces = zip(*(part.split(lengths) for part in (query, key, value)), strict=True)
    return torch.cat([_attend_all(q, k, v, 1, options) for q, k, v in pieces])


def packed_vision_attention(
    self: Any,
    hidden_states: torch.Tensor,
    cu_seqlens: torch.Tensor,
    position_embeddings: Any = None,
    packed: Bounds | None = None,
    **kwargs: Any,
) -> torch.Tensor:
    """As the original, but all images in one call instead of a loop over them. [P, hidden] -> [P, hidden]"""
    packed = packed or Bounds(cu_seqlens.int(), cu_seqlens.diff().tolist())
    # Three products instead of one: the gradient of one needs its three parts interleaved, which is slow.
    query, key, value = (
        functional.linear(hidden_states, weight, bias).unflatten(-1, (self.num_heads, -1))
        for weight, bias in zip(self.qkv.weight.chunk(3), self.qkv.bias.chunk(3), strict=True)
    )
    query, key = (rotated(part, *position_embeddings) for part in (query, key))
    out = attend_within(query, key, value, packed, scaling=self.scaling, is_causal=False)
    return self.proj(out.flatten(1))


def rotated(states: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """transformers' rotation of vision heads, computed in fp32. [P, H, D], angles [P, D] -> [P, H, D]

    The same numbers, but the halves are swapped by a flip: compiled, forward and gradient read each value
    where it lies, while slices and concatenations become masked loads and several passes.
    """
    half = states.shape[-1] // 2
    is_first = torch.arange(2 * half, device=states.device) < half
    cos, sin = cos.float(), sin.float()
    signed = torch.where(is_first, -sin, sin)
    wide = states.float()
    swapped = wide.unflatten(-1, (2, half)).flip(-2).flatten(-2)
    return (wide * cos[:, None] + swapped * signed[:, None]).to(states.dtype)
