"""A checkpoint folder becomes a sharded policy, laid out as the config says.

    no weights -> packed attention -> adapters -> frozen vision -> compiled blocks -> recomputed blocks
    -> FSDP2, each block with its weights

The order matters: adapters before sharding (they are sharded, too), compiling before sharding (so that
FSDP2's hooks stay outside of the compiled graphs).
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from training.contracts.config import ExperimentConfig
from training.distributed.fsdp import shard
from training.distributed.world import World
from training.model.families.registry import family_of
from training.model.load_by_block import (
    Filler,
    FolderReader,
    WeightReader,
    empty_model,
    has_safetensors,
)
from training.model.lora import add_lora
from training.model.policy import Policy, load_model


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


def build_policy(
    config: ExperimentConfig,
    folder: str | Path,
    world: World,
    *,
    banned_ids: Sequence[int],
    is_reference: bool = False,
) -> Policy:
    """The policy of `folder`, or the frozen reference. A collective."""
    if not has_safetensors(folder):
        model = load_model(folder, world.device)
        return shard_model(model, config, world, banned_ids=banned_ids, is_reference=is_reference)
    model, read = empty_model(folder), FolderReader(folder)
    return shard_model(model, config, world, banned_ids=banned_ids, is_reference=is_reference, read=read)


def shard_model(
    model: nn.Module,
    config: ExperimentConfig,
    world: World,
    *,
    banned_ids: Sequence[int],
    is_reference: bool = False,
    read: WeightReader | None = None,
) -> Policy:
    """The same for a `prepared` model in memory, or an `empty_model` and what reads its weights."""
    fill, family = None, family_of(model)
    if read is not None:
        family.use_quick_paths(model, world.device)
        fill = Filler(model, read, world.device)
    if config.optimiser.packing:
        from training.model.packed_attention import use_packed_attention

        use_packed_attention(model, family.text(model))
    if config.lora.rank and not is_reference:
        add_lora(model, config.lora, seed=config.optimiser.seed)
    policy = Policy(
        model,
        temperature=config.sampling.temperature,
        banned_ids=banned_ids,
        freeze_vision=config.model.freeze_vision,
        fp32_logits=config.model.fp32_logits,
    )
    if config.parallel.compile_blocks:
        compile_blocks(model)
    if config.parallel.activation_checkpointing and not is_reference:
        recompute_blocks(model, config.parallel.recomputed_share)
    offloads = config.algorithm.reference_offload if is_reference else config.parallel.cpu_offload
    shard(
        policy,
        model,
        compute_dtype=getattr(torch, config.model.dtype),
        reshards=config.parallel.reshard == "always",
        offloads=offloads,
        fill=fill,
    )
    return policy.requires_grad_(False).eval() if is_reference else policy
