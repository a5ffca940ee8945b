"""Decoding of dense text blocks on a CPU in a third of the calls that transformers' modules make.

At the size of a tiny policy a token costs calls, not arithmetic. Here projections of one input are one
product, norms one call, keys and values have room beforehand, and no module is called. The numbers are those
of transformers' forward up to the order of sums. Legend: B rows, Q query heads, H key heads, D head width.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from transformers import DynamicCache, PreTrainedModel

from training.model.families.registry import family_of
from training.sampler.engines.kept_context import layers_of

ROOM = 64
"""Columns by which keys and values grow."""
BIASED = (".q_proj", ".k_proj", ".v_proj")
"""Layers that may have a bias, as Qwen2.5's have."""


@dataclass(slots=True, kw_only=True)
class Block:
    """The weights of one text block as products want them: views of the model's own memory."""

    input_norm: torch.Tensor
    qkv: torch.Tensor
    """[(Q + 2 H) D, hidden]"""
    qkv_bias: torch.Tensor | None
    """[(Q + 2 H) D]"""
    head_norms: tuple[torch.Tensor, torch.Tensor] | None
    """Of queries and of keys. [D] each"""
    out: torch.Tensor
    mlp_norm: torch.Tensor
    gate_up: torch.Tensor
    down: torch.Tensor


class LeanWeights:
    """What decoding needs of a model; a weight sync into the model's parameters reaches it, too."""

    def __init__(self, model: PreTrainedModel) -> None:
        """Joins weights of `model`, whose layers keep their parts."""
        text, head = family_of(model).text(model), model.lm_head
        self.num_queries: int = text.config.num_attention_heads
        self.num_keys: int = text.config.num_key_value_heads
        self.width: int = text.layers[0].self_attn.head_dim
        self.eps: float = text.config.rms_norm_eps
        self.blocks = [_block(layer) for layer in text.layers]
        self.embedding, self.norm, self.head = text.embed_tokens.weight, text.norm.weight, head.weight
        self.frequencies: torch.Tensor = text.rotary_emb.inv_freq.float()
        self.rope_scale: float = text.rotary_emb.attention_scaling


def lean_weights(model: Any) -> LeanWeights | None:
    """Of dense blocks in fp32 on a CPU, without adapters or surprising biases; None of any other model."""
    family = family_of(model)
    text = family.text(model)
    is_fit = (
        model.device.type == "cpu"
        and model.dtype is torch.float32
        and all(type(layer) in family.lean_blocks for layer in text.layers)
        and text.config.hidden_act == "silu"
        and text.rotary_emb.rope_type == "default"
        and all(_is_fit(name, module) for name, module in model.named_modules())
    )
    return LeanWeights(model) if is_fit else None


def _is_fit(name: str, module: nn.Module) -> bool:
    """Whether a module is no layer, of the vision tower, or one that decoding reads rightly."""
    if not hasattr(module, "in_features") or ".visual." in name:
        return True
    return type(module) is nn.Linear and (module.bias is None or name.endswith(BIASED))


def _block(layer: Any) -> Block:
    attention, mlp = layer.self_attn, layer.mlp
    projections = (attention.q_proj, attention.k_proj, attention.v_proj)
    norms = (attention.q_norm.weight, attention.k_norm.weight) if hasattr(attention, "q_norm") else None
    return Block(
        input_norm=layer.input_layernorm.weight,
        qkv=_joined(*projections),
        qkv_bias=_joined(*projections, part="bias") if attention.q_proj.bias is not None else None,
        head_norms=norms,
        out=attention.o_proj.weight,
        mlp_norm=layer.post_attention_layernorm.weight,
        gate_up=_joined(mlp.gate_proj, mlp.up_proj),
        down=mlp.down_proj.weight,
    )


@torch.no_grad()
def _joined(*layers: nn.Linear, part: str = "weight") -> torch.Tensor:
    """Their weights (or biases) in one piece of memory, of which each layer keeps its own."""
    whole = torch.cat([getattr(layer, part) for layer in layers])
    for layer, own in zip(layers, whole.split([layer.out_features for layer in layers]), strict=True):
        getattr(layer, part).data = own
    return whole


class LeanDecoding:
    """Implements `training.sampler.engines.decoding.Decoding`."""

    def __init__(
        self,
        weights: LeanWeights,
        cache: DynamicCache,
        mask: torch.Tensor,
        next_positions: torch.Tensor,
        logits: torch.Tensor,
    ) -> None:
        """As of `PlainDecoding`; `next_positions`: [B]"""
        self.logits = logits
        self._weights = weights
        self._columns = mask.shape[1]
        self._positions = next_positions[:, None]
        self._kept = layers_of(cache)
        self._bias = torch.zeros(mask.shape).masked_fill_(mask == 0, -torch.inf)[:, None, None]
        counts = (weights.num_queries, weights.num_keys)
        self._head_norms = [
            torch.cat([norm.expand(count, -1) for norm, count in zip(block.head_norms, counts, strict=True)])
            if block.head_norms
            else None
            for block in weights.blocks
        ]
        """Per block, of queries and keys where it has any. [Q + H, D]"""

    @property
    def mask(self) -> torch.Tensor:
        return (self._bias[:, 0, 0, : self._columns] == 0).long()

    def layers(self) -> list[tuple[torch.Tensor, torch.Tensor]]:
        return [(keys[:, :, : self._columns], values[:, :, : self._columns]) for keys, values in self._kept]

    def advance(self, tokens: torch.Tensor, live: list[bool]) -> None:
        weights, column = self._weights, self._columns
        if column == self._bias.shape[-1]:
            self._grow()
        if not all(live):
            self._bias[[not one for one in live], :, :, column] = -torch.inf
        self._columns = column + 1
        angles = (self._positions * weights.frequencies)[:, None]
        cos, sin = angles.cos() * weights.rope_scale, angles.sin() * weights.rope_scale
        self._positions = self._positions + 1
        hidden = functional.embedding(tokens, weights.embedding)
        for place, block in enumerate(weights.blocks):
            hidden = self._block(place, block, hidden, cos, sin)
        last = functional.rms_norm(hidden, hidden.shape[-1:], weights.norm, weights.eps)
        self.logits = functional.linear(last, weights.head)

    def _block(
        self, place: int, block: Block, hidden: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor
    ) -> torch.Tensor:
        """One text block; its new keys and values are kept. [B, hidden] -> [B, hidden]"""
        weights, column = self._weights, self._columns - 1
        keys, values = self._kept[place]
        normed = functional.rms_norm(hidden, hidden.shape[-1:], block.input_norm, weights.eps)
        heads = functional.linear(normed, block.qkv, block.qkv_bias).unflatten(1, (-1, weights.width))
        rotated, value = heads.split([weights.num_queries + weights.num_keys, weights.num_keys], dim=1)
        if (norms := self._head_norms[place]) is not None:
            rotated = functional.rms_norm(rotated, (weights.width,), None, weights.eps) * norms
        first, second = rotated.chunk(2, dim=-1)
        rotated = torch.cat(
            (
                torch.addcmul(first * cos, second, sin, value=-1),
                torch.addcmul(second * cos, first, sin),
            ),
            dim=-1,
        )
        query, key = rotated.split([weights.num_queries, weights.num_keys], dim=1)
        keys[:, :, column] = key
        values[:, :, column] = value
        attended = functional.scaled_dot_product_attention(
            query[:, :, None],
            keys[:, :, : self._columns],
            values[:, :, : self._columns],
            attn_mask=self._bias[..., : self._columns],
            enable_gqa=weights.num_queries != weights.num_keys,
        )
        hidden = hidden + functional.linear(attended.flatten(1), block.out)
        normed = functional.rms_norm(hidden, hidden.shape[-1:], block.mlp_norm, weights.eps)
        gate, up = functional.linear(normed, block.gate_up).chunk(2, dim=-1)
        return hidden + functional.linear(functional.silu(gate) * up, block.down)

    def _grow(self) -> None:
        """Make room for further columns."""
        self._kept = [
            (functional.pad(keys, (0, 0, 0, ROOM)), functional.pad(values, (0, 0, 0, ROOM)))
            for keys, values in self._kept
        ]
        self._bias = functional.pad(self._bias, (0, ROOM))
