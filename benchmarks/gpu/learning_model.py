"""Random models of the learning run."""

from __future__ import annotations

from pathlib import Path

from training.tiny import TinySizes, make_tiny

SIZES = {
    "tiny": TinySizes(),
    "small": TinySizes(
        text_layers=4,
        text_hidden=256,
        text_intermediate=768,
        text_heads=4,
        vision_layers=4,
        vision_hidden=128,
        vision_intermediate=512,
        vision_heads=2,
        initializer_range=0.05,
    ),
}
"""small: 5.4 million parameters; heads are 64 wide, as GPU attention kernels want them."""


def make_model(folder: Path, size: str, seed: int) -> Path:
    """A random Qwen3-VL of one of `SIZES`."""
    return make_tiny(folder, seed=seed, sizes=SIZES[size])
