"""Qwen3-VL models of true dimensions with random weights, made on the GPU in seconds.

    model = make_model("4b", torch.device("cuda"))                       # in memory, for training
    make_folder("4b", folder, torch.device("cuda"))                      # what a hub checkpoint holds, bf16

Dimensions are the published configs of Qwen3-VL-2B, 4B, 8B and 32B (dense, instruct). Random weights cost
exactly what trained ones cost. The tokenizer has as many tokens as the published one (151 669), the special
ones at their published ids; ordinary tokens are bytes, merges of our own small corpus and made-up ASCII
words, so every sampled id decodes to text.

    python -m benchmarks.gpu.models 4b FOLDER [--layers N]
"""

from __future__ import annotations

import argparse
import json
import sys
import zlib
from dataclasses import dataclass
from pathlib import Path

import torch
from transformers import Qwen2Tokenizer, Qwen3VLConfig, Qwen3VLForConditionalGeneration

from training.content.recipes.tiny.make_checkpoint import (
    CHAT_TEMPLATE,
    TinySizes,
    make_tokenizer,
    write_processor_files,
)
from training.model.load_by_block import WeightReader

VOCABULARY = 151_936
"""Rows of the embedding."""
NUM_ORDINARY = 151_643
"""Ids below this one are ordinary tokens."""
SPECIAL = (
    "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|object_ref_start|>", "<|object_ref_end|>",
    "<|box_start|>", "<|box_end|>", "<|quad_start|>", "<|quad_end|>", "<|vision_start|>", "<|vision_end|>",
    "<|vision_pad|>",
    "<|image_pad|>", "<|video_pad|>", "<tool_call>", "</tool_call>", "<|fim_prefix|>", "<|fim_middle|>",
    "<|fim_suffix|>", "<|fim_pad|>", "<|repo_name|>", "<|file_sep|>", "<tool_response>", "</tool_response>",
    "<think>", "</think>",
)  # fmt: skip
"""In order of their ids, from NUM_ORDINARY on."""

SPREAD = 0.02
"""Of random weights, as the published configs say."""
IMAGE_PIXELS = {"shortest_edge": 65_536, "longest_edge": 16_777_216}
"""The published limits of an image after its resize; an experiment's config sets narrower ones."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Size:
    """Dimensions of one published model."""

    hidden: int
    intermediate: int
    layers: int
    heads: int
    kv_heads: int = 8
    head_width: int = 128
    is_tied: bool = True
    """One matrix is embedding and head."""
    vision_depth: int = 24
    vision_hidden: int = 1024
    vision_intermediate: int = 4096
    vision_heads: int = 16
    deepstack: tuple[int, ...] = (5, 11, 17)
    vocabulary: int = VOCABULARY


SIZES = {
    "2b": Size(hidden=2048, intermediate=6144, layers=28, heads=16),
    "4b": Size(hidden=2560, intermediate=9728, layers=36, heads=32),
    "8b": Size(
        hidden=4096, intermediate=12288, layers=36, heads=32, is_tied=False,
        vision_depth=27, vision_hidden=1152, vision_intermediate=4304, deepstack=(8, 16, 24),
    ),
    "32b": Size(
        hidden=5120, intermediate=25600, layers=64, heads=64, is_tied=False,
        vision_depth=27, vision_hidden=1152, vision_intermediate=4304, deepstack=(8, 16, 24),
    ),
    "small": Size(
        hidden=512, intermediate=1536, layers=4, heads=4, kv_heads=2,
        vision_depth=4, vision_hidden=256, vision_intermediate=1024, vision_heads=4, deepstack=(0, 1, 2),
    ),
    "tiny": Size(
        hidden=64, intermediate=128, layers=4, heads=4, kv_heads=2, head_width=16,
        vision_depth=4, vision_hidden=32, vision_intermediate=64, vision_heads=2, deepstack=(0, 1, 2),
    ),
}  # fmt: skip
"""`tiny` has the same parts and the same vocabulary: for trying a benchmark on a CPU. `small` has the heads
of the true sizes, which is what kernels depend on: for runs on a GPU that are about something else."""


def make_config(name: str, *, layers: int = 0) -> Qwen3VLConfig:
    """The config of SIZES[name]; `layers` cuts the text blocks (0 = all of them)."""
    size = SIZES[name]
    quarter = size.head_width // 16
    text = {
        "vocab_size": size.vocabulary,
        "hidden_size": size.hidden,
        "intermediate_size": size.intermediate,
        "num_hidden_layers": layers or size.layers,
        "num_attention_heads": size.heads,
        "num_key_value_heads": size.kv_heads,
        "head_dim": size.head_width,
        "max_position_embeddings": 262_144,
        "rms_norm_eps": 1e-6,
        "rope_parameters": {
            "rope_type": "default",
            "rope_theta": 5_000_000.0,
            # 24, 20, 20 for a head of 128: time, height and width share its 64 frequencies.
            "mrope_section": [size.head_width // 2 - 5 * quarter, 5 * quarter // 2, 5 * quarter // 2],
            "mrope_interleaved": True,
        },
        "tie_word_embeddings": size.is_tied,
        "eos_token_id": token_id("<|im_end|>"),
    }
    vision = {
        "depth": size.vision_depth,
        "hidden_size": size.vision_hidden,
        "intermediate_size": size.vision_intermediate,
        "num_heads": size.vision_heads,
        "patch_size": 16,
        "spatial_merge_size": 2,
        "temporal_patch_size": 2,
        "out_hidden_size": size.hidden,
        "num_position_embeddings": 2304,
        "deepstack_visual_indexes": list(size.deepstack),
    }
    return Qwen3VLConfig(
        text_config=text,
        vision_config=vision,
        image_token_id=token_id("<|image_pad|>"),
        video_token_id=token_id("<|video_pad|>"),
        vision_start_token_id=token_id("<|vision_start|>"),
        vision_end_token_id=token_id("<|vision_end|>"),
        tie_word_embeddings=size.is_tied,
        architectures=["Qwen3VLForConditionalGeneration"],
    )


def token_id(token: str) -> int:
    """The published id of a special token."""
    return NUM_ORDINARY + SPECIAL.index(token)


def make_model(
    name: str, device: torch.device, *, dtype: torch.dtype = torch.float32, seed: int = 0, layers: int = 0
) -> Qwen3VLForConditionalGeneration:
    """A model with random weights, made on `device`. Same seed and device, same weights."""
    torch.manual_seed(seed)
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        with device:
            model = Qwen3VLForConditionalGeneration(make_config(name, layers=layers))
    finally:
        torch.set_default_dtype(before)
    model.generation_config.eos_token_id = token_id("<|im_end|>")
    model.generation_config.pad_token_id = token_id("<|endoftext|>")
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


def make_full_tokenizer() -> Qwen2Tokenizer:
    """Bytes, merges of our corpus and made-up words up to NUM_ORDINARY; then the special tokens."""
    trained = json.loads(make_tokenizer(4096).backend_tokenizer.to_str())["model"]
    known = [token for token in trained["vocab"] if not token.startswith("<|")]
    vocabulary = {token: number for number, token in enumerate(known)}
    for number in range(NUM_ORDINARY - len(vocabulary)):
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
    write_text_files(folder)
    make_model(name, device, dtype=dtype, layers=layers).save_pretrained(folder)
    return folder


def write_text_files(folder: Path) -> None:
    """The part of a checkpoint folder that `Renderer` reads; `folder` is created."""
    folder.mkdir(parents=True, exist_ok=True)
    make_full_tokenizer().save_pretrained(folder)
    write_processor_files(folder, TinySizes())
    for path in folder.glob("*preprocessor_config.json"):
        settings = json.loads(path.read_text()) | {"size": IMAGE_PIXELS}
        path.write_text(json.dumps(settings, indent=2) + "\n")


def num_parameters(name: str) -> int:
    """Weights of SIZES[name], tied ones once."""
    with torch.device("meta"):
        model = Qwen3VLForConditionalGeneration(make_config(name))
    return sum(parameter.numel() for parameter in model.parameters())


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
