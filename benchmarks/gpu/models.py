"""Models of true dimensions with random weights, made on the GPU in seconds.

    model = make_model("4b", torch.device("cuda"))                       # in memory, for training
    make_folder("4b", folder, torch.device("cuda"))                      # what a hub checkpoint holds, bf16

Dimensions are the published configs of Qwen3-VL-2B, 4B, 8B and 32B (dense, instruct), and of one model of
each other family (`benchmarks.gpu.sizes`). Random weights cost exactly what trained ones cost. The tokenizer
has as many ordinary tokens as the published one, the special ones at their published ids; ordinary tokens are
bytes, merges of our own small corpus and made-up ASCII words, so every sampled id decodes to text.

    python -m benchmarks.gpu.models 4b FOLDER [--layers N]
"""

from __future__ import annotations

import argparse
import json
import sys
import zlib
from pathlib import Path
from typing import Any

import torch
from transformers import PretrainedConfig, Qwen2Tokenizer

from benchmarks.gpu.model_configs import config_of
from benchmarks.gpu.sizes import SIZES, Size
from training.content.recipes.tiny.make_checkpoint import (
    CHAT_TEMPLATE,
    TinySizes,
    make_tokenizer,
    write_processor_files,
)
from training.model.families.registry import family_of
from training.model.load_by_block import WeightReader

SPECIAL = (
    "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|object_ref_start|>", "<|object_ref_end|>",
    "<|box_start|>", "<|box_end|>", "<|quad_start|>", "<|quad_end|>", "<|vision_start|>", "<|vision_end|>",
    "<|vision_pad|>",
    "<|image_pad|>", "<|video_pad|>", "<tool_call>", "</tool_call>", "<|fim_prefix|>", "<|fim_middle|>",
    "<|fim_suffix|>", "<|fim_pad|>", "<|repo_name|>", "<|file_sep|>", "<tool_response>", "</tool_response>",
    "<think>", "</think>",
)  # fmt: skip
"""In order of their ids, after the ordinary ones."""

SPREAD = 0.02
"""Of random weights, as the published configs say."""
IMAGE_PIXELS = {"shortest_edge": 65_536, "longest_edge": 16_777_216}
"""The published limits of an image after its resize; an experiment's config sets narrower ones."""


def make_config(name: str, *, layers: int = 0) -> PretrainedConfig:
    """The config of SIZES[name]; `layers` cuts the text blocks (0 = all of them)."""
    size = SIZES[name]
    return config_of(size, layers, lambda token: token_id(token, size))


def token_id(token: str, size: Size) -> int:
    """The published id of a special token."""
    return size.num_ordinary + SPECIAL.index(token)


def make_model(
    name: str, device: torch.device, *, dtype: torch.dtype = torch.float32, seed: int = 0, layers: int = 0
) -> Any:
    """A model with random weights, made on `device`. Same seed and device, same weights."""
    torch.manual_seed(seed)
    config = make_config(name, layers=layers)
    with device:
        model = family_of(config).auto_class.from_config(config, dtype=dtype)
    model.generation_config.eos_token_id = token_id("<|im_end|>", SIZES[name])
    model.generation_config.pad_token_id = token_id("<|endoftext|>", SIZES[name])
    return model


def random_weights(device: torch.device) -> WeightReader:
    """Weights for an `empty_model` of training.model.load_by_block: norms are ones, biases zeros."""

    def read(name: str, shape: tuple[int, ...]) -> torch.Tensor:
        if len(shape) == 1:
            return torch.full(shape, float(name.endswith(".weight")), device=device)
        # Every process makes the same ones, and keeps its shard.
        generator = torch.Generator(device).manual_seed(zlib.crc32(name.encode()))
        return torch.empty(shape, device=device).normal_(0, SPREAD, generator=generator)

    return read


def make_full_tokenizer(num_ordinary: int) -> Qwen2Tokenizer:
    """Bytes, merges of our corpus and made-up words up to `num_ordinary`; then the special tokens."""
    trained = json.loads(make_tokenizer(4096).backend_tokenizer.to_str())["model"]
    known = [token for token in trained["vocab"] if not token.startswith("<|")]
    vocabulary = {token: number for number, token in enumerate(known)}
    for number in range(num_ordinary - len(vocabulary)):
        vocabulary[f"Ġw{number}"] = len(vocabulary)  # Ġ is how byte-level BPE writes a blank
    for token in SPECIAL:
        vocabulary[token] = len(vocabulary)
    tokenizer = Qwen2Tokenizer(
        vocab=vocabulary,
        merges=[tuple(merge) for merge in trained["merges"]],
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        unk_token="<|endoftext|>",
        additional_special_tokens=list(SPECIAL),
    )
    tokenizer.chat_template = CHAT_TEMPLATE
    return tokenizer


def make_folder(
    name: str, folder: Path, device: torch.device, *, dtype: torch.dtype = torch.bfloat16, layers: int = 0
) -> Path:
    """Write weights, config, tokenizer, chat template and image settings to `folder`, as a hub checkpoint."""
    write_text_files(folder, name)
    make_model(name, device, dtype=dtype, layers=layers).save_pretrained(folder)
    return folder


def write_text_files(folder: Path, name: str) -> None:
    """The part of a checkpoint folder of SIZES[name] that `Renderer` reads; `folder` is created."""
    folder.mkdir(parents=True, exist_ok=True)
    size = SIZES[name]
    make_full_tokenizer(size.num_ordinary).save_pretrained(folder)
    make_config(name).save_pretrained(folder)
    if not size.sees:
        return
    write_processor_files(folder, TinySizes(patch_size=size.patch))
    for path in folder.glob("*preprocessor_config.json"):
        settings = json.loads(path.read_text()) | {"size": IMAGE_PIXELS}
        path.write_text(json.dumps(settings, indent=2) + "\n")


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("name", choices=sorted(SIZES))
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("--layers", type=int, default=0)
    options = arguments.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    make_folder(options.name, options.folder, device, layers=options.layers)
    return 0


if __name__ == "__main__":
    sys.exit(main())
