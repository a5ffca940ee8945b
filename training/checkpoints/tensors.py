"""The tensors of a checkpoint: weights and optimiser by name, and the plain model folder made of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.distributed.checkpoint as dcp

from training.checkpoints.base_weights import FILE as BASE_FILE
from training.checkpoints.base_weights import BaseWeights
from training.checkpoints.shard_reader import ShardReader
from training.model.families.registry import family_at, family_of
from training.model.lora import BASE, adapter_scales, is_adapter, merged
from training.update.learner import Learner
from training.weights.model_folder_writer import copy_settings, write_pixel_limits, write_safetensors

WEIGHTS, OPTIMISER = "weights", "optimiser"
"""Folders of a checkpoint; a tensor of the optimiser is named by the second, too."""
OLD_SHARDS = "shards"
"""Where older checkpoints have both."""
MODEL = "policy.model."
LAYERS_AT_ONCE = 64
"""Tensors read together while the model folder is written: bounds the memory that it takes."""


def weights_of(learner: Learner) -> dict[str, Any]:
    """The (sharded) weights by name; loading fills them in place."""
    return {f"policy.{name}": p.detach() for name, p in learner.policy.named_parameters()}


def adapters_of(learner: Learner) -> dict[str, Any]:
    """Of `weights_of`, those that peft added."""
    return {name: weight for name, weight in weights_of(learner).items() if is_adapter(name)}


def optimiser_state(learner: Learner) -> dict[str, Any]:
    """Every tensor that the optimiser keeps, as OPTIMISER|PARAMETER|KEY."""
    names: dict[torch.Tensor, str] = {
        parameter: name for name, parameter in learner.policy.named_parameters()
    }
    return {
        f"{OPTIMISER}|{names[parameter]}|{key}": value
        for member in learner.optimiser.members
        for parameter, state in member.state.items()
        for key, value in state.items()
        if isinstance(value, torch.Tensor)
    }


def load_weights(learner: Learner, checkpoint: Path) -> None:
    """Fill the (sharded) weights: from their own folder, else from the plain model. A collective.

    A folder of adapters alone leaves the frozen weights below them as they are.
    """
    weights = weights_of(learner)
    for name in (WEIGHTS, OLD_SHARDS):
        if (shards := checkpoint / name).is_dir():
            wanted = weights if holds_all_weights(checkpoint) else adapters_of(learner)
            dcp.load(wanted, storage_reader=ShardReader(shards))
            return
    family = family_of(learner.policy.model)
    plain = {family.checkpoint_name(name.removeprefix(MODEL)): weight for name, weight in weights.items()}
    dcp.load(plain, storage_reader=dcp.HuggingFaceStorageReader(str(checkpoint / "model")))


def holds_all_weights(checkpoint: Path) -> bool:
    """False when the weights below its adapters are those of another folder."""
    return not (checkpoint / BASE_FILE).is_file()


def load_optimiser(learner: Learner, checkpoint: Path) -> None:
    """Fill the optimisers that own the saved tensors. A collective."""
    shards = checkpoint / OPTIMISER
    shards = shards if shards.is_dir() else checkpoint / OLD_SHARDS
    tensors = optimiser_space(learner, shards)
    if tensors:  # before the first update there are none
        dcp.load(tensors, storage_reader=ShardReader(shards))
    fill_optimiser(learner, tensors)


def optimiser_space(learner: Learner, shards: Path) -> dict[str, Any]:
    """Empty tensors, sharded like their weights, for the optimiser state that the checkpoint holds."""
    parameters = dict(learner.policy.named_parameters())
    space = {}
    for key, shape in ShardReader(shards).shapes().items():
        if not key.startswith(f"{OPTIMISER}|"):
            continue
        parameter = parameters[key.split("|")[1]]
        same = shape == tuple(parameter.shape)
        space[key] = torch.zeros_like(parameter.detach()) if same else torch.zeros(shape)
    return space


def fill_optimiser(learner: Learner, tensors: dict[str, Any]) -> None:
    """Hand loaded tensors to the optimisers that own them."""
    names = {parameter: name for name, parameter in learner.policy.named_parameters()}
    owners = {
        names[parameter]: (member, group, parameter)
        for member in learner.optimiser.members
        for group in member.param_groups
        for parameter in group["params"]
    }
    for key, value in tensors.items():
        if key.startswith(f"{OPTIMISER}|"):
            _, name, part = key.split("|")
            member, group, parameter = owners[name]
            member.state[parameter][part] = _placed(value, group, parameter)


def _placed(value: torch.Tensor, group: dict[str, Any], parameter: torch.Tensor) -> torch.Tensor:
    """`value` where its optimiser wants it: a fused one counts steps beside the weights, others on the host.

    As `torch.optim.Optimizer.load_state_dict` does it.
    """
    is_count = value.ndim == 0 and parameter.ndim > 0
    if is_count and (group.get("fused") or group.get("capturable")):
        return value.to(parameter.device, torch.float32)
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainModel:
    """What the model folder of a checkpoint is made of, beside the weights that were saved."""

    source: Path
    """Model folder of the settings."""
    sizes: dict[str, tuple[int, ...]]
    """Whole shape of each of the model's weights, adapters included."""
    scales: dict[str, float]
    """Layer with an adapter -> alpha / rank; such layers are merged."""
    base: BaseWeights | None
    """Where weights that were not saved are read."""
    pixels: tuple[int, int]
    """Least and most of a screenshot, as it was trained with."""

    @classmethod
    def of(cls, learner: Learner, source: Path, base: BaseWeights | None) -> PlainModel:
        model = learner.policy.model
        sizes = {name: tuple(parameter.shape) for name, parameter in model.named_parameters()}
        limits = learner.config.model
        return cls(
            source=source,
            sizes=sizes,
            scales=adapter_scales(model),
            base=base,
            pixels=(limits.min_pixels, limits.max_pixels),
        )


def write_model_folder(shards: Path, plain: PlainModel, folder: Path) -> None:
    """A plain transformers folder of saved shards, adapters merged; one process, no group.

    Reading the shards back costs the trainer nothing: no rank gathers, no GPU holds a whole model.
    """
    copy_settings(plain.source, folder)
    write_pixel_limits(folder, *plain.pixels)
    names = family_at(plain.source).checkpoint_name
    manifest = [
        (names(name.replace(BASE, ".")), shape) for name, shape in plain.sizes.items() if not is_adapter(name)
    ]
    write_safetensors(folder / "model.safetensors", manifest, torch.float32, _plain_tensors(shards, plain))


def _plain_tensors(shards: Path, plain: PlainModel) -> Iterator[torch.Tensor]:
    """The tensors of a model folder, in the order of its sizes."""
    sizes, base = plain.sizes, plain.base
    names = [name for name in sizes if not is_adapter(name)]
    for start in range(0, len(names), LAYERS_AT_ONCE):
        wanted = names[start : start + LAYERS_AT_ONCE]
        layers = {name.partition(BASE)[0] for name in wanted if BASE in name}
        adapters = [name for name in sizes if is_adapter(name) and name.partition(".lora_")[0] in layers]
        saved = adapters if base else (*wanted, *adapters)
        space = {name: torch.empty(sizes[name]) for name in saved}
        if space:
            keyed = {MODEL + name: tensor for name, tensor in space.items()}
            dcp.load(keyed, storage_reader=ShardReader(shards), no_dist=True)
        if base:
            space |= {name: base.read(name.replace(BASE, "."), sizes[name]) for name in wanted}
        tensors = merged(space, plain.scales)
        for name in wanted:
            yield tensors[name.replace(BASE, ".")]
