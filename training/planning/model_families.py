"""The families of models that Deskhand trains, found by `model_type` of a config.json without loading torch.

How the trainer and the engine run a family stands in `training.model.families`, one file each.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFamily:
    """One row of the table."""

    name: str
    """Of its file in `training.model.families`."""
    label: str
    model_types: tuple[str, ...]
    has_vision: bool


FAMILIES = (
    ModelFamily(
        name="qwen3_vl",
        label="Qwen3-VL (dense and mixture of experts)",
        model_types=("qwen3_vl", "qwen3_vl_moe"),
        has_vision=True,
    ),
)
"""Every family that is supported."""


class UnsupportedModel(ValueError):
    """Raised for a model that no family runs; the message names it and what is supported."""


def supported() -> str:
    """All families in words, for messages and pages."""
    return "; ".join(f"{family.label}: {', '.join(family.model_types)}" for family in FAMILIES)


def family_of_config(config: Mapping[str, Any]) -> ModelFamily:
    """The family of a config.json. Raises UnsupportedModel."""
    model_type = str(config.get("model_type", ""))
    family = next((one for one in FAMILIES if model_type in one.model_types), None)
    if family is None:
        raise UnsupportedModel(
            f"model_type {model_type or 'is missing in config.json, which'!s} is not supported; "
            f"choose a model of one of these: {supported()}"
        )
    text = config.get("text_config") or config
    if text.get("use_sliding_window") or "sliding_attention" in (text.get("layer_types") or ()):
        raise UnsupportedModel(
            f"{model_type}: use_sliding_window in config.json asks for sliding windows, which are not "
            "supported; choose a model whose blocks all attend to everything before"
        )
    return family


def family_of_folder(folder: str | Path) -> ModelFamily:
    """The family of a model folder. Raises UnsupportedModel."""
    try:
        return family_of_config(json.loads((Path(folder) / "config.json").read_text()))
    except UnsupportedModel as error:
        raise UnsupportedModel(f"model.path: {folder}: {error}") from error
