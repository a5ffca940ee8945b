"""The family of a model: the row of `training.planning.model_families` and its file here."""

from pathlib import Path
from typing import Any

from training.model.families.contract import Family
from training.model.families.dense_text import DenseText
from training.model.families.qwen2_5_vl import Qwen25VL
from training.model.families.qwen3_5 import Qwen35, Qwen35Text
from training.model.families.qwen3_vl import Qwen3VL
from training.planning.model_families import ModelFamily, family_of_folder, family_of_type

BY_NAME: dict[str, Family] = {
    "dense_text": DenseText(),
    "qwen2_5_vl": Qwen25VL(),
    "qwen3_5": Qwen35(),
    "qwen3_5_text": Qwen35Text(),
    "qwen3_vl": Qwen3VL(),
}


def family_of(model: Any) -> Family:
    """Of a transformers model, or of the config of one. Raises UnsupportedModel."""
    return _file(family_of_type(getattr(model, "config", model).model_type))


def family_at(folder: str | Path) -> Family:
    """Of a model folder. Raises UnsupportedModel."""
    return _file(family_of_folder(folder))


def _file(row: ModelFamily) -> Family:
    return BY_NAME[row.name]
