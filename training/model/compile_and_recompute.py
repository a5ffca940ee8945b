"""What is done to every transformer block before sharding: compiling all, then recomputing some.

Both wrap a block's forward, not the block: FSDP2's hooks stay outside of graphs and recomputing.
"""

from functools import partial

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from training.model.families.registry import family_of


def compile_blocks(model: nn.Module) -> None:
    """torch.compile the forward of every block; a stack's blocks share one graph, whatever the lengths."""
    for blocks in family_of(model).stacks(model):
        for block in blocks:
            block.forward = torch.compile(block.forward, dynamic=True)


def recompute_blocks(model: nn.Module, share: float) -> None:
    """Let `share` of the blocks of each stack, evenly spread, run again in the backward pass."""
    for blocks in family_of(model).stacks(model):
        for number, block in enumerate(blocks):
            if int((number + 1) * share + 1e-9) > int(number * share + 1e-9):
                block.forward = partial(checkpoint, block.forward, use_reentrant=False)
