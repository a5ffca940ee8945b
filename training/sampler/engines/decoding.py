"""A batch while it is decoded, by transformers' own forward: any model on any device.

`training.sampler.engines.lean_decoding` does the same for a small model on a CPU, faster. Legend: B rows,
H heads, D head width, V vocabulary.
"""

from collections.abc import Sequence
from typing import Any, Protocol

import torch
from torch.nn import functional
from transformers import DynamicCache, PreTrainedModel

from training.sampler.engines.kept_context import Kept, fill, is_state, layers_of


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

    def layers(self) -> list[Kept]:
        """What each block keeps."""
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
        ended = (column == 0).flatten()
        # A mask hides a column; a state would go on with what an ended row is fed.
        kept = [tuple(state[ended] for state in states) for states in self._states()]
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
        for states, before in zip(self._states(), kept, strict=True):
            for state, old in zip(states, before, strict=True):
                state[ended] = old

    def layers(self) -> list[Kept]:
        return layers_of(self._cache)

    def _states(self) -> list[Kept]:
        """Of blocks without keys and values; the cache's own memory."""
        return [states for place, states in enumerate(self.layers()) if is_state(self._cache, place)]


def joined(parts: Sequence[Any]) -> PlainDecoding:
    """`PlainDecoding`s of batches that were read one by one, as one; missing columns are masked out."""
    if len(parts) == 1:
        return parts[0]
    widest = max(part.mask.shape[1] for part in parts)
    model, cache = parts[0]._model, DynamicCache(config=parts[0]._model.config)
    for place, rows in enumerate(zip(*(part.layers() for part in parts), strict=True)):
        if not is_state(cache, place):
            rows = tuple(tuple(_padded(side, widest) for side in row) for row in rows)
        first, second = zip(*rows, strict=True)
        fill(cache, place, (torch.cat(first), torch.cat(second)))
    return PlainDecoding(
        model,
        cache,
        torch.cat([functional.pad(part.mask, (0, widest - part.mask.shape[1])) for part in parts]),
        torch.cat([part._next_positions for part in parts], dim=-2),
        torch.cat([part.logits for part in parts]),
    )


def _padded(side: torch.Tensor, columns: int) -> torch.Tensor:
    return functional.pad(side, (0, 0, 0, columns - side.shape[2]))
