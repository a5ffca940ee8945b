"""Low-rank adapters by peft, inside the model: y = W x + alpha / rank B A x, with W frozen.

Source: LoRA, arXiv 2106.09685. The adapters are merged into plain weights for every export, so other
experiments and the hub see an ordinary checkpoint. The engine gets them as they are: see
`training.weights.adapter_folder`.
"""

import json
import re
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import nn

from training.contracts.config import LoraConfig
from training.model.families.registry import family_of
from training.planning.model_families import family_of_type

ADAPTER = "default"
BASE = ".base_layer."
ADAPTER_CONFIG = "adapter_config.json"
ADAPTER_TENSORS = "adapter_model.safetensors"
"""The files of an adapter's folder, as peft names them."""
PEFT_PREFIX = "base_model.model."
"""What peft puts in front of the names of a model's tensors."""


def add_lora(model: Any, config: LoraConfig, *, seed: int) -> None:
    """Put adapters into the text blocks of `model` and freeze everything else.

    Raises ValueError when no layer has one of the target names.
    """
    from peft import LoraConfig as PeftConfig
    from peft import inject_adapter_in_model

    targets = family_of_type(model.config.model_type).adapted(config.targets)
    names = "|".join(re.escape(name) for name in targets)
    text = family_of(model).text(model)
    prefix = next(re.escape(name) for name, module in model.named_modules() if module is text)
    pattern = rf"{prefix}\.layers\.\d+\..*\.({names})"
    if not any(re.fullmatch(pattern, name) for name, _ in model.named_modules()):
        raise ValueError(f"lora.targets: no layer of the text blocks is named {', '.join(config.targets)}")
    wanted = PeftConfig(
        r=config.rank,
        lora_alpha=config.alpha,  # type: ignore[arg-type]  # peft divides by the rank: any number will do
        target_modules=pattern,
        lora_dropout=0.0,
        bias="none",
    )
    # Every rank initialises the same adapters: sharding takes each rank's own slice of its own copy.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        inject_adapter_in_model(wanted, model)
        _begin_empty_adapters(model)


def _begin_empty_adapters(model: nn.Module) -> None:
    """Adapters of layers that have no weights yet (on meta) would have none either: they begin here."""
    from peft.tuners.lora import LoraLayer

    for layer in model.modules():
        if isinstance(layer, LoraLayer) and layer.lora_A[ADAPTER].weight.is_meta:
            for side in (layer.lora_A, layer.lora_B):
                side[ADAPTER].to_empty(device="cpu")
            layer.reset_lora_parameters(ADAPTER, True)


@torch.no_grad()
def take_adapter(model: nn.Module, folder: Path) -> None:
    """Let a model with the adapter's base answer as the adapted one. Raises ValueError when it does not fit.

    The adapter stays beside the weights, in fp32: merged into bfloat16 it would be rounded away.
    """
    described = json.loads((folder / ADAPTER_CONFIG).read_text())
    if not adapter_scales(model):
        targets = tuple(described["target_modules"])
        config = LoraConfig(rank=described["r"], alpha=described["lora_alpha"], targets=targets)
        add_lora(model, config, seed=0)
    tensors = load_file(folder / ADAPTER_TENSORS)
    ours = {name: parameter for name, parameter in model.named_parameters() if is_adapter(name)}
    names = {name: PEFT_PREFIX + name.replace(f".{ADAPTER}.", ".") for name in ours}
    if set(names.values()) != set(tensors):
        raise ValueError(f"{folder}: an adapter of other layers than the one before")
    for name, parameter in ours.items():
        tensor = tensors[names[name]]
        if tensor.shape != parameter.shape:
            raise ValueError(f"{folder}: {name} is {tuple(tensor.shape)}, not {tuple(parameter.shape)}")
        parameter.data = tensor.to(device=parameter.device, dtype=torch.float32)


def adapter_scales(model: nn.Module) -> dict[str, float]:
    """Layer with an adapter -> alpha / rank."""
    return {
        name: float(module.scaling[ADAPTER])
        for name, module in model.named_modules()
        if isinstance(getattr(module, "scaling", None), dict) and ADAPTER in module.scaling
    }


def is_adapter(name: str) -> bool:
    """True for a parameter that peft added."""
    return ".lora_A." in name or ".lora_B." in name


def merge(base: torch.Tensor, down: torch.Tensor, up: torch.Tensor, scale: float) -> torch.Tensor:
    """W + alpha / rank B A, computed in fp32, in the dtype of `base`."""
    return (base.float() + scale * up.float() @ down.float()).to(base.dtype)


def merged(state: dict[str, torch.Tensor], scales: dict[str, float]) -> dict[str, torch.Tensor]:
    """`state` with the adapters of the layers in `scales` {name: alpha / rank} added to their weights."""
    plain: dict[str, torch.Tensor] = {}
    for name, tensor in state.items():
        layer, separator, part = name.partition(BASE)
        if separator:
            if part == "weight" and layer in scales:
                down = state[f"{layer}.lora_A.{ADAPTER}.weight"]
                up = state[f"{layer}.lora_B.{ADAPTER}.weight"]
                tensor = merge(tensor, down, up, scales[layer])
            plain[f"{layer}.{part}"] = tensor
        elif not is_adapter(name):
            plain[name] = tensor
    return plain
