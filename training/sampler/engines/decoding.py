"""A batch while it is decoded, by transformers' own forward: any model on any device.

`training.sampler.engines.lean_decoding` does the same for a small model on a CPU, faster. Legend: B rows,
H heads, D head width, V vocabulary.
"""

from __future__ import annotations

from typing import Any, Protocol

import torch
from transformers import DynamicCache, PreTrainedModel


class Decoding(Protocol):
    """The state of one batch, made by its prefill."""

    logits: torch.Tensor
    """Of the next token. [B, V]"""

    @property
    def mask(self) -> torch.Tensor:
        """1 on real columns. [B, columns]"""
        ...

    def advance(self, tokens: torch.Tensor, live: list[bool]) -> None:
        """Feed one token per row; columns of rows that are not live are masked out. tokens: [B]"""
        ...

    def layers(self) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """Keys and values per layer. [B, H, columns, D] each"""
        ...


class PlainDecoding:
    """Implements `Decoding`."""

    def __init__(
        self,
        model: PreTrainedModel,
        cache: DynamicCache,
        mask: torch.Tensor,
        next_positions: torch.Tensor,
        logits: torch.Tensor,
    ) -> None:
        """`next_positions`: of the next token of each row, as the model takes them. [B, 1] or [3, B, 1]"""
        self.mask: torch.Tensor = mask
        self.logits = logits
        self._model, self._cache, self._next_positions = model, cache, next_positions

    def advance(self, tokens: torch.Tensor, live: list[bool]) -> None:
        column = torch.tensor(live, device=self.mask.device).long()[:, None]
        self.mask = torch.cat([self.mask, column], dim=1)
        outputs = self._model(
            input_ids=tokens[:, None],
            position_ids=self._next_positions,
            attention_mask=self.mask,
            past_key_values=self._cache,
            use_cache=True,
        )
        self._next_positions = self._next_positions + 1
        self.logits = outputs.logits[:, -1]

    def layers(self) -> list[tuple[torch.Tensor, torch.Tensor]]:
        return layers_of(self._cache)


def layers_of(cache: DynamicCache) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Keys and values of a cache; all layers have full attention."""
    layers: Any = cache.layers
    return [(layer.keys, layer.values) for layer in layers]
