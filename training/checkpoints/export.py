"""A checkpoint as a plain transformers folder: `python -m training.checkpoints.export CHECKPOINT OUTPUT`.

    CHECKPOINT/model (fp32, adapters merged) -> names and shapes checked against the architecture
                                             -> cast -> safetensors shards + index + tokenizer files

The folder loads with `from_pretrained`, can be served, uploaded, or named as `model.path` of another
experiment. Written to OUTPUT.tmp and renamed, so that a folder that exists is complete. One shard is in
memory at a time. The first line of the output says how many bytes are coming: {"total_bytes": N}.
"""

import argparse
import json
import shutil
import sys
from collections.abc import Callable
from math import prod
from pathlib import Path
from typing import Literal

import torch
from huggingface_hub import split_torch_state_dict_into_shards
from safetensors import safe_open
from safetensors.torch import save_file
from transformers import AutoConfig

from training.checkpoints.store import is_weight_file
from training.contracts.trainer_exit import ExitCode
from training.contracts.trainer_state import COMPLETE
from training.model.families.registry import family_at

Dtype = Literal["float32", "bfloat16", "float16"]
CARD = "README.md"
SHARD_BYTES = 5 * 1000**3
SPARE_BYTES = 64 * 1000**2
"""A disk that is filled to its last byte stops everything else on it."""


class ExportError(ValueError):
    """Raised when a checkpoint cannot be exported; the message says what to do."""


def export_checkpoint(
    checkpoint: Path,
    output: Path,
    *,
    dtype: Dtype = "bfloat16",
    shard_bytes: int = SHARD_BYTES,
    card: str = "",
    announce: Callable[[int], None] = lambda total_bytes: None,
) -> Path:
    """Write `checkpoint` to `output` (must not exist) in `dtype`; returns `output`. Raises ExportError.

    `card` becomes its README.md, in place of that of the weights which the training began with.
    `announce` is called with the bytes of the folder before the first of them is written.
    """
    source = checkpoint / "model"
    if not (checkpoint / COMPLETE).is_file() or not source.is_dir():
        raise ExportError(f"{checkpoint}: not a complete checkpoint (no {COMPLETE} file); choose another one")
    if output.exists():
        raise ExportError(f"{output}: exists already; choose a new folder or remove it")
    shapes = read_shapes(source)
    check_shapes({name: shape for name, (_, shape) in shapes.items()}, source)
    others = [
        path
        for path in source.iterdir()
        if path.is_file() and not is_weight_file(path) and path.name not in (CARD, ".gitattributes")
    ]
    width = getattr(torch, dtype).itemsize
    total = sum(prod(shape) * width for _, shape in shapes.values()) + sum(p.stat().st_size for p in others)
    total += len(card.encode())
    folder = output.with_name(output.name + ".tmp")
    try:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        require_space(folder, total)
        announce(total)
        for path in others:
            shutil.copyfile(path, folder / path.name)
        if card:
            (folder / CARD).write_text(card, encoding="utf-8")
        _name_dtype(folder / "config.json", dtype)
        write_shards(shapes, getattr(torch, dtype), folder, shard_bytes)
        make_readable(folder)
        return folder.rename(output)
    except OSError as error:
        reason = error.strerror or str(error)
        raise ExportError(f"{output}: cannot be written ({reason}); free space or choose another") from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def make_readable(folder: Path) -> None:
    """An export is for other people and programs; what is above it keeps its own mode."""
    folder.chmod(0o755)
    for path in folder.iterdir():
        path.chmod(0o644)


def require_space(folder: Path, num_bytes: int) -> None:
    """Raise ExportError unless the disk of `folder` has room for `num_bytes`."""
    free = shutil.disk_usage(folder).free
    if free < num_bytes + SPARE_BYTES:
        raise ExportError(
            f"{folder.parent}: the export needs {num_bytes / 1e9:.2f} GB and the disk has "
            f"{free / 1e9:.2f} GB free; remove old exports or checkpoints, or choose another folder"
        )


Place = tuple[Path, tuple[int, ...]]
"""Where a tensor stands, and its shape."""


def read_shapes(folder: Path) -> dict[str, Place]:
    """All tensors of a folder's safetensors files, without reading them."""
    found: dict[str, Place] = {}
    for path in sorted(folder.glob("*.safetensors")):
        with safe_open(path, framework="pt") as tensors:
            for name in tensors.keys():  # noqa: SIM118 - not a dict: the file has no iterator
                found[name] = (path, tuple(tensors.get_slice(name).get_shape()))
    return found


def check_shapes(found: dict[str, tuple[int, ...]], folder: Path) -> None:
    """Raise ExportError unless the tensors are those of the architecture that `folder` describes."""
    family = family_at(folder)
    with torch.device("meta"):
        model = family.auto_class.from_config(AutoConfig.from_pretrained(folder, trust_remote_code=False))
    model.tie_weights()
    wanted = {family.checkpoint_name(name): tuple(weight.shape) for name, weight in model.named_parameters()}
    missing, unknown = sorted(wanted.keys() - found.keys()), sorted(found.keys() - wanted.keys())
    wrong = sorted(name for name in wanted.keys() & found.keys() if wanted[name] != found[name])
    if missing or unknown or wrong:
        raise ExportError(
            f"{folder}: the weights do not fit its config.json: missing {missing[:3]}, "
            f"unknown {unknown[:3]}, wrong shape {wrong[:3]}"
        )


def write_shards(shapes: dict[str, Place], dtype: torch.dtype, folder: Path, shard_bytes: int) -> None:
    """model.safetensors, or numbered files and their index when they are larger than `shard_bytes`."""
    sizes = {name: torch.empty(shape, dtype=dtype, device="meta") for name, (_, shape) in shapes.items()}
    split = split_torch_state_dict_into_shards(sizes, max_shard_size=shard_bytes)
    for file, names in split.filename_to_tensors.items():
        weights = {name: _read(shapes[name][0], name, dtype) for name in names}
        save_file(weights, folder / file, metadata={"format": "pt"})
    if split.is_sharded:
        index = {"metadata": split.metadata, "weight_map": split.tensor_to_filename}
        (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=2) + "\n")


def _read(path: Path, name: str, dtype: torch.dtype) -> torch.Tensor:
    with safe_open(path, framework="pt") as tensors:
        return tensors.get_tensor(name).to(dtype)


def _name_dtype(path: Path, dtype: str) -> None:
    """Write `dtype` into a config and its sub-configs, so that loaders choose it by themselves."""
    values = json.loads(path.read_text())
    for part in (values, *(one for one in values.values() if isinstance(one, dict))):
        if part is values or "dtype" in part:
            part["dtype"] = dtype
    path.write_text(json.dumps(values, indent=2) + "\n")


def main(arguments: list[str] | None = None) -> int:
    """Export; 2 and a message on stderr when it cannot be done."""
    parser = argparse.ArgumentParser(
        prog="python -m training.checkpoints.export", description=__doc__.splitlines()[0]
    )
    parser.add_argument(
        "checkpoint", type=Path, help="checkpoint folder, e.g. .../checkpoints/00007-grpo-000020"
    )
    parser.add_argument("output", type=Path, help="folder to make")
    parser.add_argument("--dtype", choices=("float32", "bfloat16", "float16"), default="bfloat16")
    parser.add_argument("--card", type=Path, help="model card, written as README.md")
    parser.add_argument("--shard-bytes", type=int, default=SHARD_BYTES, help="largest weight file")
    options = parser.parse_args(arguments)
    try:
        folder = export_checkpoint(
            options.checkpoint,
            options.output,
            dtype=options.dtype,
            shard_bytes=options.shard_bytes,
            card=options.card.read_text(encoding="utf-8") if options.card else "",
            announce=_say_total,
        )
    except ExportError as error:
        sys.stderr.write(f"{error}\n")
        return ExitCode.WRONG_SETTINGS
    sys.stdout.write(f"{folder}\n")
    return 0


def _say_total(total_bytes: int) -> None:
    sys.stdout.write(json.dumps({"total_bytes": total_bytes}) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
