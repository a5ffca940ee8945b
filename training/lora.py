"""Low-rank adapters by peft, inside the model: y = W x + alpha / rank B A x, with W frozen.

Source: LoRA, arXiv 2106.09685. The adapters are merged into plain weights for every export, so the
engine, other experiments and the hub see an ordinary checkpoint.
"""

from __future__ import annotations

import re

import torch
from torch import nn

from training.config import LoraConfig
from training.parallel import full_state

ADAPTER = "default"
BASE = ".base_layer."


def add_lora(model: nn.Module, config: LoraConfig, *, seed: int) -> None:
    """Put adapters into the text blocks of `model` and freeze everything else.

    Raises ValueError when no layer has one of the target names.
    """
    from peft import LoraConfig as PeftConfig
    from peft import inject_adapter_in_model

    names = "|".join(re.escape(name) for name in config.targets)
    pattern = rf".*language_model\.layers\.\d+\..*\.({names})"
    if not any(re.fullmatch(pattern, name) for name, _ in model.named_modules()):
        raise ValueError(f"lora.targets: no layer of the text blocks is named {', '.join(config.targets)}")
    wanted = PeftConfig(
        r=config.rank, lora_alpha=config.alpha, target_modules=pattern, lora_dropout=0.0, bias="none"
    )
    # Every rank draws the same adapters: sharding takes each rank's own slice of its own copy.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        inject_adapter_in_model(wanted, model)


def plain_state(model: nn.Module) -> dict[str, torch.Tensor]:
    """All weights gathered on the CPU under their own names, adapters merged. A collective."""
    state = full_state(model)
    scales = {
        name: float(module.scaling[ADAPTER])
        for name, module in model.named_modules()
        if isinstance(getattr(module, "scaling", None), dict) and ADAPTER in module.scaling
    }
    return merged(state, scales)


def merged(state: dict[str, torch.Tensor], scales: dict[str, float]) -> dict[str, torch.Tensor]:
    """`state` with the adapters of the layers in `scales` {name: alpha / rank} added to their weights."""
    plain: dict[str, torch.Tensor] = {}
    for name, tensor in state.items():
        layer, separator, part = name.partition(BASE)
        if separator:
            if part == "weight" and layer in scales:
                down = state[f"{layer}.lora_A.{ADAPTER}.weight"].float()
                up = state[f"{layer}.lora_B.{ADAPTER}.weight"].float()
                tensor = (tensor.float() + scales[layer] * up @ down).to(tensor.dtype)
            plain[f"{layer}.{part}"] = tensor
        elif ".lora_A." not in name and ".lora_B." not in name:
            plain[name] = tensor
    return plain
