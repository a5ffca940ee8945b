"""Makes a larger model that acts exactly like a smaller one: wider blocks, and more of them.

    python -m training.content.recipes.first_desk.grow_checkpoint CHECKPOINT OUTPUT [--width 16] [--layers 4]

CHECKPOINT is the folder of a dense Qwen3-VL, e.g. training/checkpoints_shipped/first-desk. Every unit of the
model (hidden units, heads, neurons) stands `width` times in the grown one, and what reads it divides its
weights by that (Net2Net, arXiv 1511.05641). Zero-sum noise over the copies that a unit reads makes them
differ from the first gradient on, and changes no output. Further text blocks repeat the ones before them,
with zeros where they write (LLaMA Pro, arXiv 2401.02415). So a start that has passed its gate has passed it
at any size.

With AdamW, divide the learning rate by `width`: a unit now moves by the sum over the copies that it reads.
"""

import argparse
import json
import logging
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

log = logging.getLogger("grow_checkpoint")
NOISE = 0.25
"""Spread of the noise, relative to that of weights that were drawn for the grown width."""
TEXT_BLOCK = re.compile(r"(model\.language_model\.layers\.)(\d+)(\..*)")
WRITES = ("self_attn.o_proj.weight", "mlp.down_proj.weight")
"""What of a text block writes to the hidden units."""
UNCHANGED = ("q_norm.weight", "k_norm.weight")
"""Per head, and heads keep their width."""
READ_BY_INDEX = ("embed_tokens.weight", "pos_embed.weight", "patch_embed.proj.weight")
"""What they read (tokens, places, pixels) has no copies."""
PARTS = {
    # name -> (parts that the rows consist of, and the columns); copies lie side by side within a part
    r"attn\.qkv\.(weight|bias)": (3, 1),
    r"merger(_list\.\d+)?\.linear_fc1\.weight": (1, 4),
    r"deepstack_merger_list\.\d+\.norm\.(weight|bias)": (4, 1),
}


def grow(source: Path, output: Path, *, width: int, layers: int, seed: int = 0) -> int:
    """Write the grown checkpoint and return its number of weights.

    Raises ValueError when the text model of `source` has more than `layers` blocks.
    """
    config = json.loads((source / "config.json").read_text())
    num_blocks = config["text_config"]["num_hidden_layers"]
    if layers < num_blocks:
        raise ValueError(f"--layers: {source} has {num_blocks} text blocks already")
    shutil.copytree(source, output, ignore=shutil.ignore_patterns("*.safetensors", "README.md"))
    (output / "config.json").write_text(json.dumps(grown_config(config, width, layers), indent=2) + "\n")
    generator = torch.Generator().manual_seed(seed)
    weights = deepened(load_file(source / "model.safetensors"), num_blocks, layers)
    grown = {name: widened(name, tensor, width, generator) for name, tensor in weights.items()}
    save_file(grown, output / "model.safetensors", metadata={"format": "pt"})
    return sum(tensor.numel() for tensor in grown.values())


def grown_config(config: dict[str, Any], width: int, layers: int) -> dict[str, Any]:
    """config.json of the grown checkpoint."""
    text, vision = dict(config["text_config"]), dict(config["vision_config"])
    for name in ("hidden_size", "intermediate_size", "num_attention_heads", "num_key_value_heads"):
        text[name] *= width
    for name in ("hidden_size", "intermediate_size", "num_heads", "out_hidden_size"):
        vision[name] *= width
    return config | {"text_config": text | {"num_hidden_layers": layers}, "vision_config": vision}


def deepened(weights: dict[str, torch.Tensor], num_blocks: int, layers: int) -> dict[str, torch.Tensor]:
    """The weights with `layers` text blocks. The first stays first: pictures are added behind it."""
    sources = [number * num_blocks // layers for number in range(layers)]
    deeper = {}
    for name, tensor in weights.items():
        match = TEXT_BLOCK.fullmatch(name)
        if not match:
            deeper[name] = tensor
            continue
        before, number, part = match.groups()
        copies = [place for place, source in enumerate(sources) if source == int(number)]
        for place in copies:
            is_silent = place != copies[0] and part[1:] in WRITES
            deeper[f"{before}{place}{part}"] = torch.zeros_like(tensor) if is_silent else tensor
    return deeper


def widened(name: str, tensor: torch.Tensor, width: int, generator: torch.Generator) -> torch.Tensor:
    """A weight of the grown model: what it writes and what it reads stand there `width` times."""
    if name.endswith(UNCHANGED):
        return tensor.clone()
    row_parts, column_parts = next((parts for key, parts in PARTS.items() if re.search(key, name)), (1, 1))
    if tensor.dim() == 1:
        grown = _repeated(tensor, 0, row_parts, width)
        # The head reads as many copies as there are, by the embedding, which is not divided.
        return grown / width if name.endswith("language_model.norm.weight") else grown
    if name.endswith("patch_embed.proj.weight"):
        return _repeated(tensor, 0, 1, width)
    if name.endswith(READ_BY_INDEX):
        return _repeated(tensor, 1, 1, width)
    grown = _repeated(_repeated(tensor, 0, row_parts, width), 1, column_parts, width) / width
    noise = torch.randn(grown.shape, generator=generator) * (NOISE * tensor.std() / width**0.5)
    copies = noise.view(grown.shape[0], column_parts, width, -1)
    return grown + (copies - copies.mean(dim=2, keepdim=True)).view_as(grown)


def _repeated(tensor: torch.Tensor, axis: int, parts: int, width: int) -> torch.Tensor:
    """Each of the `parts` of an axis `width` times after itself."""
    pieces = [piece for part in tensor.chunk(parts, dim=axis) for piece in [part] * width]
    return torch.cat(pieces, dim=axis)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m training.content.recipes.first_desk.grow_checkpoint", description=__doc__
    )
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--width", type=int, default=16, help="copies of every unit")
    parser.add_argument("--layers", type=int, default=4, help="text blocks")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    size = grow(
        options.checkpoint, options.output, width=options.width, layers=options.layers, seed=options.seed
    )
    log.info("%s: %.1f million weights", options.output, size / 1e6)
    return 0


if __name__ == "__main__":
    sys.exit(main())
