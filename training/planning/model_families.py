"""The families of models that Deskhand trains, found by `model_type` of a config.json without loading torch.

How the trainer and the engine run a family stands in `training.model.families`, one file each.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from training.planning.model_json import ATTENTION, STATE, block_kinds, read_object, text_part, vision_part
from training.planning.model_settings import refused_settings


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFamily:
    """One row of the table."""

    name: str
    """Of its file in `training.model.families`."""
    label: str
    model_types: tuple[str, ...]
    has_vision: bool
    is_served: bool = True
    """SGLang has a class for it."""
    kernels: str = ""
    """The package whose kernels its blocks want on a GPU; without it they are right and slow."""
    adapted_too: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Layers that get an adapter where `lora.targets` names the first one of a row."""

    def adapted(self, targets: Iterable[str]) -> tuple[str, ...]:
        """`lora.targets` with what the family's other blocks have in place of them."""
        names = list(targets)
        return (*names, *(more for name, others in self.adapted_too if name in names for more in others))


LINEAR_ATTENTION = (("q_proj", ("in_proj_qkv", "in_proj_z")), ("o_proj", ("out_proj",)))
"""What stands for queries and outputs in a block that keeps a state."""
FAMILIES = (
    ModelFamily(
        name="qwen3_vl",
        label="Qwen3-VL (dense and mixture of experts)",
        model_types=("qwen3_vl", "qwen3_vl_moe"),
        has_vision=True,
    ),
    ModelFamily(
        name="qwen2_5_vl",
        label="Qwen2.5-VL",
        model_types=("qwen2_5_vl",),
        has_vision=True,
    ),
    ModelFamily(
        name="qwen3_5",
        label="Qwen3.5 (dense and mixture of experts)",
        model_types=("qwen3_5", "qwen3_5_moe"),
        has_vision=True,
        kernels="fla-core",
        adapted_too=LINEAR_ATTENTION,
    ),
    ModelFamily(
        name="qwen3_5_text",
        label="Qwen3.5 without its vision tower",
        model_types=("qwen3_5_text",),
        has_vision=False,
        is_served=False,
        kernels="fla-core",
        adapted_too=LINEAR_ATTENTION,
    ),
    ModelFamily(
        name="dense_text",
        label="dense text models (Qwen3, Qwen2.5, Llama, SmolLM2, Mistral)",
        model_types=("qwen3", "qwen2", "llama", "mistral"),
        has_vision=False,
    ),
)
"""Every family that is supported."""


class UnsupportedModel(ValueError):
    """Raised for a model that no family runs; the message names it and what is supported."""


def supported() -> str:
    """All families in words, for messages and pages."""
    return "; ".join(f"{family.label}: {', '.join(family.model_types)}" for family in FAMILIES)


def family_of_type(model_type: str) -> ModelFamily:
    """The family that runs a `model_type`. Raises UnsupportedModel."""
    family = next((one for one in FAMILIES if model_type in one.model_types), None)
    if family is None:
        raise UnsupportedModel(
            f"model_type {model_type or 'is missing in config.json, which'!s} is not supported; "
            f"choose a model of one of these: {supported()}"
        )
    return family


def family_of_config(config: dict[str, Any]) -> ModelFamily:
    """The family of a config.json. Raises UnsupportedModel, also for settings that no family here runs."""
    model_type = str(config.get("model_type", ""))
    family = family_of_type(model_type)
    if code := config.get("auto_map"):
        names = ", ".join(map(str, code)) if isinstance(code, dict) else code
        raise UnsupportedModel(
            f"{model_type}: config.json names code of its own ({names}), which is never run; choose a model "
            "that transformers knows by itself"
        )
    try:
        refused = next(refused_settings(model_type, config, has_vision=family.has_vision), None)
    except TypeError as error:
        refused = f"a value of another kind than its key wants: {error}"
    if refused is not None:
        raise UnsupportedModel(f"{model_type}: config.json has {refused}")
    return family


def family_of_folder(folder: str | Path) -> ModelFamily:
    """The family of a model folder. Raises UnsupportedModel, ValueError and OSError."""
    try:
        return family_of_config(read_object(Path(folder) / "config.json"))
    except UnsupportedModel as error:
        raise UnsupportedModel(f"model.path: {folder}: {error}") from error


def unnamed_interval(folder: str | Path) -> int | None:
    """Each how many-th block attends, where the config lists the blocks alone; None = nothing is missing."""
    config = read_object(Path(folder) / "config.json")
    kinds = block_kinds(config)
    if STATE not in kinds or ATTENTION not in kinds or "full_attention_interval" in text_part(config):
        return None
    return kinds.index(ATTENTION) + 1


def image_factor(folder: str | Path) -> int | None:
    """What the sides of a resized image are multiples of; None for a folder that does not say."""
    try:
        vision = vision_part(read_object(Path(folder) / "config.json"))
        return int(vision["patch_size"]) * int(vision["spatial_merge_size"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
