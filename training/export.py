"""A checkpoint as a plain transformers folder: `python -m training.export CHECKPOINT OUTPUT`.

    CHECKPOINT/model (fp32, adapters merged) -> names and shapes checked against the architecture
                                             -> cast -> safetensors shards + index + tokenizer files

The folder loads with `from_pretrained`, can be served, uploaded, or named as `model.path` of another
experiment. Written to OUTPUT.tmp and renamed, so that a folder that exists is complete.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from pathlib import Path
from typing import Literal

import torch
from huggingface_hub import split_torch_state_dict_into_shards
from safetensors import safe_open
from safetensors.torch import save_file
from transformers import AutoConfig, AutoModelForImageTextToText

from training.checkpoints import COMPLETE, is_weight_file

Dtype = Literal["float32", "bfloat16", "float16"]
SHARD_BYTES = 5 * 1000**3


class ExportError(ValueError):
    """Raised when a checkpoint cannot be exported; the message says what to do."""


def export_checkpoint(
    checkpoint: Path, output: Path, *, dtype: Dtype = "bfloat16", shard_bytes: int = SHARD_BYTES
) -> Path:
    """Write `checkpoint` to `output` (must not exist) in `dtype`; returns `output`. Raises ExportError."""
    source = checkpoint / "model"
    if not (checkpoint / COMPLETE).is_file() or not source.is_dir():
        raise ExportError(f"{checkpoint}: not a complete checkpoint (no {COMPLETE} file); choose another one")
    if output.exists():
        raise ExportError(f"{output}: exists already; choose a new folder or remove it")
    weights = read_weights(source, getattr(torch, dtype))
    check_weights(weights, source)
    folder = output.with_name(output.name + ".tmp")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for path in source.iterdir():
        if path.is_file() and not is_weight_file(path):
            shutil.copyfile(path, folder / path.name)
    _name_dtype(folder / "config.json", dtype)
    write_shards(weights, folder, shard_bytes)
    return folder.rename(output)


def read_weights(folder: Path, dtype: torch.dtype) -> dict[str, torch.Tensor]:
    """All tensors of a folder's safetensors files, cast one by one."""
    weights: dict[str, torch.Tensor] = {}
    for path in sorted(folder.glob("*.safetensors")):
        with safe_open(path, framework="pt") as tensors:
            for name in tensors.keys():  # noqa: SIM118 - not a dict: the file has no iterator
                weights[name] = tensors.get_tensor(name).to(dtype)
    return weights


def check_weights(weights: dict[str, torch.Tensor], folder: Path) -> None:
    """Raise ExportError unless `weights` are those of the architecture that `folder` describes."""
    with torch.device("meta"):
        model = AutoModelForImageTextToText.from_config(AutoConfig.from_pretrained(folder))
    model.tie_weights()
    wanted = {name: tuple(parameter.shape) for name, parameter in model.named_parameters()}
    found = {name: tuple(tensor.shape) for name, tensor in weights.items()}
    missing, unknown = sorted(wanted.keys() - found.keys()), sorted(found.keys() - wanted.keys())
    wrong = sorted(name for name in wanted.keys() & found.keys() if wanted[name] != found[name])
    if missing or unknown or wrong:
        raise ExportError(
            f"{folder}: the weights do not fit its config.json: missing {missing[:3]}, "
            f"unknown {unknown[:3]}, wrong shape {wrong[:3]}"
        )


def write_shards(weights: dict[str, torch.Tensor], folder: Path, shard_bytes: int) -> None:
    """model.safetensors, or numbered files and their index when they are larger than `shard_bytes`."""
    split = split_torch_state_dict_into_shards(weights, max_shard_size=shard_bytes)
    for file, names in split.filename_to_tensors.items():
        save_file({name: weights[name] for name in names}, folder / file, metadata={"format": "pt"})
    if split.is_sharded:
        index = {"metadata": split.metadata, "weight_map": split.tensor_to_filename}
        (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=2) + "\n")


def _name_dtype(path: Path, dtype: str) -> None:
    """Write `dtype` into a config and its sub-configs, so that loaders choose it by themselves."""
    values = json.loads(path.read_text())
    for part in (values, *(one for one in values.values() if isinstance(one, dict))):
        if part is values or "dtype" in part:
            part["dtype"] = dtype
    path.write_text(json.dumps(values, indent=2) + "\n")


def main(arguments: list[str] | None = None) -> int:
    """Export; 2 and a message on stderr when it cannot be done."""
    parser = argparse.ArgumentParser(prog="python -m training.export", description=__doc__.splitlines()[0])
    parser.add_argument(
        "checkpoint", type=Path, help="checkpoint folder, e.g. .../checkpoints/00007-grpo-000020"
    )
    parser.add_argument("output", type=Path, help="folder to make")
    parser.add_argument("--dtype", choices=("float32", "bfloat16", "float16"), default="bfloat16")
    parser.add_argument("--shard-bytes", type=int, default=SHARD_BYTES, help="largest weight file")
    options = parser.parse_args(arguments)
    try:
        folder = export_checkpoint(
            options.checkpoint, options.output, dtype=options.dtype, shard_bytes=options.shard_bytes
        )
    except ExportError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    sys.stdout.write(f"{folder}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
