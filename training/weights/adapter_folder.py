"""A LoRA adapter as a folder in peft's format: what travels to an engine instead of merged weights.

bfloat16 weights cannot hold what one step changes: merged into them at a learning rate of 2e-6, 1 % of the
change arrived. The base never changes, so an engine that has it needs the adapter alone, in fp32.

    adapter_config.json, adapter_model.safetensors (base_model.model.NAME.lora_A.weight ...)
"""

import json
from pathlib import Path

import torch
from torch import nn

from training.distributed.fsdp import full
from training.distributed.world import World
from training.model.lora import ADAPTER_CONFIG, ADAPTER_TENSORS, PEFT_PREFIX, adapter_scales
from training.weights.model_folder_writer import write_safetensors


def has_adapter(model: nn.Module) -> bool:
    """Whether only adapters of `model` learn."""
    return bool(adapter_scales(model))


def num_adapter_bytes(model: nn.Module) -> int:
    """Size of the file of tensors."""
    return sum(4 * parameter.numel() for _, parameter in _tensors(model))


@torch.no_grad()
def export_adapter(model: nn.Module, source: Path, folder: Path, world: World) -> None:
    """Write the adapter of `model`, whose other weights are those of `source`. A collective."""
    named = _tensors(model)
    tensors = (full(parameter.detach().float()) for _, parameter in named)
    if not world.is_main:
        for _ in tensors:  # takes part in gathering, keeps nothing
            pass
        return
    folder.mkdir(parents=True, exist_ok=True)
    manifest = [(name, tuple(parameter.shape)) for name, parameter in named]
    write_safetensors(folder / ADAPTER_TENSORS, manifest, torch.float32, tensors)
    scales = adapter_scales(model)
    rank = next(shape[0] for name, shape in manifest if ".lora_A." in name)
    config = {
        "peft_type": "LORA",
        "base_model_name_or_path": str(source),
        "r": rank,
        "lora_alpha": rank * next(iter(scales.values())),
        "target_modules": sorted({name.rpartition(".")[2] for name in scales}),
        "lora_dropout": 0.0,
        "bias": "none",
    }
    (folder / ADAPTER_CONFIG).write_text(json.dumps(config, indent=2) + "\n")


def _tensors(model: nn.Module) -> list[tuple[str, nn.Parameter]]:
    """(name in peft's words, perhaps a shard) of the adapter."""
    return [
        (f"{PEFT_PREFIX}{name.replace('.default.', '.')}", parameter)
        for name, parameter in model.named_parameters()
        if ".lora_A." in name or ".lora_B." in name
    ]
