"""Random models of the learning run."""

from __future__ import annotations

from pathlib import Path

from training.recipes.tiny.make_checkpoint import TinySizes, make_tiny

SIZES = {"tiny": TinySizes(), "wide": TinySizes(text_head_width=64, vision_heads=2)}
"""wide: 1.1 million parameters; its heads are as wide as GPU attention kernels want them."""


def make_model(folder: Path, size: str, seed: int) -> Path:
    """A random Qwen3-VL of one of `SIZES`."""
    return make_tiny(folder, seed=seed, sizes=SIZES[size])
