"""What an engine keeps of a sequence between its turns, and the caches that are made of it.

A block with full attention keeps keys and values, a column per token. One with a state (Qwen3.5) keeps that
of its convolution and its recurrence, which are of one length: nothing shorter can be taken out of them.
Legend: B rows, H heads, D head width.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from transformers import DynamicCache

Kept = tuple[torch.Tensor, torch.Tensor]
"""Of a block: keys and values, [B, H, columns, D] each; or two states without columns."""


@dataclass(kw_only=True, slots=True)
class KeptContext:
    """What the engine remembers of a sequence."""

    policy_version: int
    length: int
    """Leading tokens that it was computed of."""
    layers: list[Kept]
    """Of one row."""


def is_state(cache: DynamicCache, place: int) -> bool:
    """Whether a block keeps a state instead of keys and values."""
    return hasattr(cache.layers[place], "recurrent_states")


def layers_of(cache: DynamicCache) -> list[Kept]:
    """Of all rows; the cache's own memory."""
    layers: Any = cache.layers
    return [
        (layer.conv_states[0], layer.recurrent_states[0])
        if is_state(cache, place)
        else (layer.keys, layer.values)
        for place, layer in enumerate(layers)
    ]


def fill(cache: DynamicCache, place: int, kept: Kept) -> None:
    """Give a block of a new cache what it has kept."""
    first, second = kept
    if is_state(cache, place):
        cache.update_conv_state(first, place)
        cache.update_recurrent_state(second, place)
    else:
        cache.update(first, second, place)


def stacked(config: Any, contexts: Sequence[KeptContext | None], columns: int) -> DynamicCache:
    """All contexts in one cache of `columns`, zeros where a context is shorter."""
    cache = DynamicCache(config=config)
    if not columns:
        return cache
    sample = next(context for context in contexts if context)
    for place, (first, _) in enumerate(sample.layers):
        if is_state(cache, place):
            assert len(contexts) == 1, "states are of one length"
            fill(cache, place, (first[None], sample.layers[place][1][None]))
            continue
        heads, _, width = first.shape
        keys = first.new_zeros(len(contexts), heads, columns, width)
        values = torch.zeros_like(keys)
        for row, context in enumerate(contexts):
            if context:
                keys[row, :, : context.length], values[row, :, : context.length] = context.layers[place]
        fill(cache, place, (keys, values))
    return cache


def kept_row(layers: Sequence[Kept], mask: torch.Tensor, row: int, version: int) -> KeptContext:
    """A row's real columns, and its states. mask: [B, columns]"""
    real = mask[row].nonzero().squeeze(-1)
    return KeptContext(
        policy_version=version,
        length=len(real),
        layers=[
            (first[row].index_select(1, real), second[row].index_select(1, real))
            if first.ndim == second.ndim  # the states of a convolution and of a recurrence differ in theirs
            else (first[row].clone(), second[row].clone())
            for first, second in layers
        ],
    )
