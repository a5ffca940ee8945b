"""Model folders in transformers' format, written tensor by tensor without a copy of the whole model.

The file of weights is mapped into memory and every tensor is copied straight to its place:
    8 bytes: length of the header | header, JSON padded to 8 bytes | tensors, one after the other
Source of the layout: the safetensors format.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Sequence
from math import prod
from pathlib import Path

import torch
from torch import nn

from training.parallel import World
from training.weights.tensors import plain_weights

DTYPE_NAMES = {torch.float32: "F32", torch.bfloat16: "BF16", torch.float16: "F16"}
BOUNCE_BYTES = 256 * 2**20
"""Page-locked memory between a GPU and the file: copies to ordinary memory are several times slower."""

Manifest = Sequence[tuple[str, tuple[int, ...]]]
"""(name, shape) of each tensor, in the order of the file."""


def export_model(
    model: nn.Module, source: Path, folder: Path, world: World, dtype: torch.dtype = torch.float32
) -> None:
    """Write a plain transformers folder: our weights, everything else as in `source`. A collective."""
    weights = plain_weights(model)
    tensors = (weight.gather(dtype) for weight in weights)
    if not world.is_main:
        for _ in tensors:  # takes part in gathering, keeps nothing
            pass
        return
    copy_settings(source, folder)
    manifest = [(weight.name, weight.shape) for weight in weights]
    write_safetensors(folder / "model.safetensors", manifest, dtype, tensors)


def copy_settings(source: Path, folder: Path) -> None:
    """Everything of a model folder but its weights."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in source.iterdir():
        if path.is_file() and not is_weight_file(path):
            shutil.copyfile(path, folder / path.name)


def is_weight_file(path: Path) -> bool:
    """True for the files of a model folder that hold tensors."""
    return path.suffix in {".safetensors", ".bin", ".pt", ".pth"} or path.name.endswith(".index.json")


def write_safetensors(
    path: Path, manifest: Manifest, dtype: torch.dtype, tensors: Iterable[torch.Tensor]
) -> None:
    """Write `tensors`, which must come as `manifest` announces them. Raises ValueError when they do not."""
    header, ends = _header(manifest, dtype)
    with path.open("wb") as stream:
        stream.write(header)
        stream.truncate(len(header) + (ends[-1] if ends else 0))
    if not ends:
        return
    file = torch.from_file(str(path), shared=True, size=len(header) + ends[-1], dtype=torch.uint8)
    place, bounce = len(header), Bounce()
    for (name, shape), end, tensor in zip(manifest, ends, tensors, strict=True):
        if tuple(tensor.shape) != shape or tensor.dtype != dtype:
            raise ValueError(
                f"{path.name}: {name} is {tensor.dtype} {tuple(tensor.shape)}, not {dtype} {shape}"
            )
        stop = len(header) + end
        bounce.copy(file[place:stop], tensor.detach().contiguous().view(-1).view(torch.uint8))
        place = stop


def _header(manifest: Manifest, dtype: torch.dtype) -> tuple[bytes, list[int]]:
    """The file's first bytes, and where each tensor ends behind them."""
    entries: dict[str, object] = {"__metadata__": {"format": "pt"}}
    ends: list[int] = []
    for name, shape in manifest:
        start = ends[-1] if ends else 0
        ends.append(start + prod(shape) * dtype.itemsize)
        entries[name] = {"dtype": DTYPE_NAMES[dtype], "shape": shape, "data_offsets": (start, ends[-1])}
    text = json.dumps(entries, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text, ends


class Bounce:
    """Copies bytes of any device to ordinary memory."""

    def __init__(self) -> None:
        self._buffer: torch.Tensor | None = None

    def copy(self, target: torch.Tensor, source: torch.Tensor) -> None:
        """`source` to `target`; both are flat uint8 of the same length."""
        if source.device.type != "cuda":
            target.copy_(source)
            return
        if self._buffer is None:
            self._buffer = torch.empty(BOUNCE_BYTES, dtype=torch.uint8, pin_memory=True)
        for start in range(0, len(source), BOUNCE_BYTES):
            piece = source[start : start + BOUNCE_BYTES]
            self._buffer[: len(piece)].copy_(piece)
            target[start : start + len(piece)].copy_(self._buffer[: len(piece)])
