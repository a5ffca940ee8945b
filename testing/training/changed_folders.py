"""Ways to change a model folder, most of which break it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from training.planning.model_json import read_object

Break = Callable[[Path], Any]
WEIGHTS = "model.safetensors"


def config(**values: Any) -> Break:
    return described("config.json", **values)


def described(file: str, **values: Any) -> Break:
    """Change keys of a JSON file; None takes one away."""

    def change(folder: Path) -> None:
        found = json.loads((folder / file).read_text()) | values
        kept = {key: value for key, value in found.items() if value is not None}
        (folder / file).write_text(json.dumps(kept))

    return change


def tower(**values: Any) -> Break:
    """Change keys of `vision_config`."""

    def change(folder: Path) -> None:
        config(vision_config=read_object(folder / "config.json")["vision_config"] | values)(folder)

    return change


def part(**values: Any) -> Break:
    """Change keys of `text_config`."""

    def change(folder: Path) -> None:
        config(text_config=read_object(folder / "config.json")["text_config"] | values)(folder)

    return change


def weights(change: Callable[[dict[str, torch.Tensor]], Any]) -> Break:
    def apply(folder: Path) -> None:
        tensors = load_file(folder / WEIGHTS)
        change(tensors)
        save_file(tensors, folder / WEIGHTS, {"format": "pt"})

    return apply


def cut(count: int) -> Break:
    def apply(folder: Path) -> None:
        content = (folder / WEIGHTS).read_bytes()
        (folder / WEIGHTS).write_bytes(content[:count])

    return apply


def turned(held: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {name: one.mT.contiguous() for name, one in held.items() if ".experts." in name}


def split(held: dict[str, torch.Tensor], *, count: int) -> None:
    """The first experts one by one, as transformers itself saves them."""
    for name in [name for name in held if ".experts." in name]:
        stacked, (base, _, kind) = held.pop(name), name.rpartition(".")
        for number in range(count):
            parts = {"down_proj": stacked[number]}
            if kind == "gate_up_proj":
                parts = dict(zip(("gate_proj", "up_proj"), stacked[number].chunk(2), strict=True))
            held |= {f"{base}.{number}.{part}.weight": one.clone() for part, one in parts.items()}


def text(file: str, words: str) -> Break:
    return lambda folder: (folder / file).write_text(words)


def sharded(folder: Path, *, without: str = "", has_index: bool = True) -> None:
    tensors = load_file(folder / WEIGHTS)
    (folder / WEIGHTS).unlink()
    places = {}
    for number in (1, 2):
        file = f"model-{number:05d}-of-00002.safetensors"
        part = {name: tensors[name] for name in sorted(tensors)[number - 1 :: 2]}
        save_file(part, folder / file, {"format": "pt"})
        places |= dict.fromkeys(part, file)
    if has_index:
        (folder / f"{WEIGHTS}.index.json").write_text(json.dumps({"weight_map": places}))
    if without:
        (folder / without).unlink()
