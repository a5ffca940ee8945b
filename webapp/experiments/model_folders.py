"""Checkpoint folders as `model.path` names them, and the shapes in them."""

import json
import struct
from math import prod
from pathlib import Path
from typing import Any

from django.conf import settings

from training.planning.model_folders import find_folder
from training.planning.model_shape import ModelShape, shape_of

SHIPPED_MODELS = Path(settings.BASE_DIR) / "training" / "checkpoints_shipped"
MAX_HEADER_BYTES = 100_000_000
TINY_SHAPE = ModelShape(
    width=128, inner=384, num_layers=2, attended=128, cached=128, vocabulary=704, is_tied=True,
    num_counted=900_000,
)  # fmt: skip


def model_folder(path: str) -> Path | None:
    """The checkpoint folder that `model.path` names, found as the gpu worker does; None if absent."""
    return find_folder(path, shipped=SHIPPED_MODELS, data=Path(settings.DATA_DIR))


def model_shape(folder: Path) -> ModelShape:
    """Sizes from config.json and the weight files' headers. Raises ValueError for an unreadable folder."""
    try:
        config = json.loads((folder / "config.json").read_text())
    except ValueError as error:
        raise ValueError(f"{folder / 'config.json'} is not JSON: {error}") from error
    counted = sum(_parameters_in(file) for file in sorted(folder.glob("*.safetensors")))
    return shape_of(config, counted)


def _parameters_in(file: Path) -> int:
    with file.open("rb") as stream:
        (length,) = struct.unpack("<Q", stream.read(8))
        if length > MAX_HEADER_BYTES:
            raise ValueError(f"{file} is not a safetensors file")
        header: dict[str, Any] = json.loads(stream.read(length))
    return sum(prod(entry["shape"]) for name, entry in header.items() if name != "__metadata__")
