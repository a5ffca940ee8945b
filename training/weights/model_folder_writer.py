"""Model folders in transformers' format, written tensor by tensor without a copy of the whole model.

Every tensor of the file of weights is written straight to its place:
    8 bytes: length of the header | header, JSON padded to 8 bytes | tensors, one after the other
Source of the layout: the safetensors format.
"""

from __future__ import annotations

import json
import os
import queue
import shutil
import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from math import prod
from pathlib import Path

import torch
from torch import nn

from training.distributed.world import World
from training.weights.unsharded_weights import plain_weights

DTYPE_NAMES = {torch.float32: "F32", torch.bfloat16: "BF16", torch.float16: "F16"}
PIECE_BYTES = 64 * 2**20
WRITERS = 6
"""Threads that write: one alone fills memory at a fraction of its speed."""

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


def write_pixel_limits(folder: Path, least: int, most: int) -> None:
    """Let the folder's processor resize screenshots as the training did; without one nothing is written.

    The limits of the first weights are seldom those that were trained with, and another size is another grid.
    """
    for name, inner in (("preprocessor_config.json", None), ("processor_config.json", "image_processor")):
        path = folder / name
        whole = json.loads(path.read_text()) if path.is_file() else {}
        settings = whole.get(inner) if inner else whole
        if settings:
            settings["size"] = {"shortest_edge": least, "longest_edge": most}
            old_names = {"min_pixels": least, "max_pixels": most}
            settings |= {key: value for key, value in old_names.items() if key in settings}
            path.write_text(json.dumps(whole, indent=2) + "\n")


def is_weight_file(path: Path) -> bool:
    """True for the files of a model folder that hold tensors."""
    return path.suffix in {".safetensors", ".bin", ".pt", ".pth"} or path.name.endswith(".index.json")


def write_safetensors(
    path: Path, manifest: Manifest, dtype: torch.dtype, tensors: Iterable[torch.Tensor]
) -> None:
    """Write `tensors`, which must come as `manifest` announces them. Raises ValueError when they do not."""
    header, ends = _header(manifest, dtype)
    with path.open("wb") as stream, FileCopier(stream.fileno()) as copier:
        stream.write(header)
        stream.flush()
        place = len(header)
        for (name, shape), end, tensor in zip(manifest, ends, tensors, strict=True):
            if tuple(tensor.shape) != shape or tensor.dtype != dtype:
                raise ValueError(
                    f"{path.name}: {name} is {tensor.dtype} {tuple(tensor.shape)}, not {dtype} {shape}"
                )
            copier.copy(tensor.detach().contiguous().view(-1).view(torch.uint8), place)
            place = len(header) + end


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


class FileCopier:
    """Writes flat uint8 tensors of any device to places of a file, several pieces at once.

    A GPU's bytes go through page-locked buffers; while threads write some, the next one is filled.
    """

    def __init__(self, file: int) -> None:
        self._file = file
        self._threads = ThreadPoolExecutor(WRITERS, thread_name_prefix="write")
        self._free: queue.SimpleQueue[torch.Tensor] = queue.SimpleQueue()
        self._has_buffers = False
        self._written: list[Future[None]] = []
        self._slots = threading.BoundedSemaphore(2 * WRITERS)
        """Pieces that wait or are written: the tensors behind them stay in memory as long."""

    def __enter__(self) -> FileCopier:
        return self

    def __exit__(self, *_: object) -> None:
        self._threads.shutdown(wait=True)
        for written in self._written:
            written.result()  # a full disk is noticed by a thread

    def copy(self, source: torch.Tensor, place: int) -> None:
        """Start writing `source` at byte `place`. Only a GPU's may be changed when this returns."""
        for start in range(0, len(source), PIECE_BYTES):
            piece = source[start : start + PIECE_BYTES]
            self._slots.acquire()
            if source.device.type == "cuda":
                buffer = self._buffer()
                buffer[: len(piece)].copy_(piece)
                work = self._threads.submit(self._write, buffer[: len(piece)], place + start, buffer)
            else:
                work = self._threads.submit(self._write, piece, place + start)
            self._written.append(work)

    def _buffer(self) -> torch.Tensor:
        """A page-locked buffer that is free."""
        if not self._has_buffers:
            self._has_buffers = True
            for _ in range(WRITERS + 1):
                self._free.put(torch.empty(PIECE_BYTES, dtype=torch.uint8, pin_memory=True))
        return self._free.get()

    def _write(self, piece: torch.Tensor, place: int, buffer: torch.Tensor | None = None) -> None:
        try:
            data = piece.numpy().data
            while data:
                done = os.pwrite(self._file, data, place)
                data, place = data[done:], place + done
        finally:
            self._slots.release()
            if buffer is not None:
                self._free.put(buffer)
