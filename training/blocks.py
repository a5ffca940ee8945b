"""What is done to every transformer block before sharding: recomputing some, compiling all."""

from __future__ import annotations

from functools import partial

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


def stacks(model: nn.Module) -> list[nn.ModuleList]:
    """The text blocks and the vision blocks of a Qwen3-VL."""
    return [model.model.language_model.layers, model.model.visual.blocks]


def recompute_blocks(model: nn.Module, share: float) -> None:
    """Let `share` of the blocks of each stack, evenly spread, run again in the backward pass."""
    for blocks in stacks(model):
        for number, block in enumerate(blocks):
            is_chosen = int((number + 1) * share + 1e-9) > int(number * share + 1e-9)
            block.gradient_checkpointing = is_chosen
            block._gradient_checkpointing_func = partial(checkpoint, use_reentrant=False)


def compile_blocks(model: nn.Module) -> None:
    """torch.compile the forward of every block; all blocks of a stack share one graph, whatever the lengths.

    The forward, not the module: FSDP2's hooks and the recomputing stay outside of the graphs.
    """
    for blocks in stacks(model):
        for block in blocks:
            block.forward = torch.compile(block.forward, dynamic=True)
