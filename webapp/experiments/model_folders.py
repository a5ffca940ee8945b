"""Checkpoint folders as `model.path` names them, and the shapes in them."""

from collections.abc import Mapping
from math import prod
from pathlib import Path

from django.conf import settings

from training.planning.model_folders import find_folder
from training.planning.model_json import read_object
from training.planning.model_shape import ModelShape, shape_of
from training.planning.weight_files import StoredTensor

SHIPPED_MODELS = Path(settings.BASE_DIR) / "training" / "checkpoints_shipped"
TINY_SHAPE = ModelShape(
    width=128, inner=384, num_layers=2, attended=128, cached=128, vocabulary=704, is_tied=True,
    num_counted=900_000,
)  # fmt: skip


def model_folder(path: str) -> Path | None:
    """The checkpoint folder that `model.path` names, found as the gpu worker does; None if absent."""
    return find_folder(path, shipped=SHIPPED_MODELS, data=Path(settings.DATA_DIR))


def model_shape(folder: Path, tensors: Mapping[str, StoredTensor]) -> ModelShape:
    """Sizes from config.json and the headers of the weights. Raises ValueError and OSError."""
    counted = sum(prod(tensor.shape) for tensor in tensors.values())
    return shape_of(read_object(folder / "config.json"), counted)
