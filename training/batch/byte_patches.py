"""Screenshots as bytes until they are on the device: an eighth of what their patch values take.

A row of a still image says the same for each of the tower's frames, and every value is one of 256 levels per
channel. So the host cuts the resized image into rows of bytes (`Renderer.byte_rows`); the device looks up
their levels and repeats them, bit for bit what `Renderer.patches` makes.
Shapes: R patches of all images, C channels, S pixels of a patch.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch


def patch_values(rows: torch.Tensor, levels: torch.Tensor, frames: int) -> torch.Tensor:
    """Rows of bytes as the tower reads them, each channel `frames` times.

    rows: [R, C * S] uint8; levels: what each byte stands for, [C, 256] float32 -> [R, C * frames * S] float32
    """
    channels = len(levels)
    first = 256 * torch.arange(channels, dtype=torch.int32, device=rows.device)
    places = rows.unflatten(1, (channels, -1)).int() + first[:, None]
    values = levels.flatten()[places]
    return values[:, :, None].expand(-1, -1, frames, -1).flatten(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class BytePatches:
    """Where a trainer gets screenshots as bytes, and how its device reads them."""

    rows: Callable[[str], np.ndarray]
    """Name of a frame -> its `Renderer.byte_rows`. May be called from several threads at once."""
    levels: torch.Tensor
    """On the device. [C, 256]"""
    frames: int
    """Frames that one row of the tower spans."""

    def values(self, rows: torch.Tensor) -> torch.Tensor:
        """`patch_values` of rows on the device."""
        return patch_values(rows, self.levels, self.frames)
