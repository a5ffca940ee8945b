"""From the config's model path to a checkpoint folder."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from django.conf import settings

from training.planning.model_folders import (
    TINY_RANDOM,
    NotInHubCache,
    cached_snapshot,
    candidates_of,
    find_folder,
    hub_model,
)

MAKING_TIMEOUT_S = 300.0


class ModelNotFound(Exception):
    """Raised when model.path names neither a folder nor a shipped checkpoint."""


def resolve_model(path: str, seed: int = 0) -> str:
    """Absolute folder of the weights that a model field names, or of tiny-random's. Raises ModelNotFound."""
    if path == TINY_RANDOM:
        return str(make_tiny_random(Path(settings.DATA_DIR) / "models" / f"{TINY_RANDOM}-{seed}", seed))
    shipped = Path(settings.BASE_DIR) / "training" / "checkpoints_shipped"
    data = Path(settings.DATA_DIR)
    if (folder := find_folder(path, shipped=shipped, data=data)) is not None:
        return str(folder)
    if (model := hub_model(path)) is not None:
        try:
            cached_snapshot(model)
        except NotInHubCache as error:
            raise ModelNotFound(f"model.path: {error}") from error
    looked = ", ".join(str(candidate) for candidate in candidates_of(path, shipped=shipped, data=data))
    raise ModelNotFound(f"model.path: no checkpoint folder (config.json) at any of: {looked}")


def make_tiny_random(folder: Path, seed: int) -> Path:
    """The random tiny model of `seed`, made in a process of its own (torch stays out of this one)."""
    if (folder / "config.json").is_file():
        return folder.resolve()
    partial = folder.with_name(f"{folder.name}.{os.getpid()}.part")
    command = [
        sys.executable,
        "-m",
        "training.content.recipes.tiny.make_checkpoint",
        str(partial),
        "--seed",
        str(seed),
    ]
    result = subprocess.run(
        command, cwd=settings.BASE_DIR, capture_output=True, text=True, timeout=MAKING_TIMEOUT_S, check=False
    )
    if result.returncode:
        raise ModelNotFound(f"model.path: cannot make {TINY_RANDOM}:\n{result.stderr[-1000:]}")
    try:
        partial.rename(folder)
    except OSError:  # there is one: another worker's, made meanwhile, or half of one
        if (folder / "config.json").is_file():
            shutil.rmtree(partial)
        else:
            shutil.rmtree(folder)
            partial.rename(folder)
    return folder.resolve()
