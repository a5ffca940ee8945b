"""SGLang's Qwen3-VL with two changes: runs inside SGLang's processes.

- Pixels come from the spool (`training.sglang.spool`) when the vision tower runs, and only then.
- New weights drop SGLang's cache of image embeddings. SGLang 0.5.16 keys it by image alone and keeps it
  through weight updates and cache flushes, so that a trained vision tower would be shown its old output.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sglang.srt.managers import mm_utils
from sglang.srt.models import qwen3_vl, qwen3_vl_moe

from training.sglang.patches import patches
from training.sglang.spool import LEVELS


class FromSpool:
    """Mixed in before SGLang's class."""

    visual: Any
    _levels: torch.Tensor | None = None

    def get_image_feature(self, items: list[Any]) -> torch.Tensor:
        """Embeddings of the images, one after the other. [image pads, hidden (with deepstack)]"""
        rows = torch.cat([self._rows(item) for item in items]).to(self.visual.dtype)
        grids = torch.cat([item.image_grid_thw for item in items])
        return self.visual(rows, grid_thw=grids)

    def load_weights(self, weights: Iterable[tuple[str, torch.Tensor]]) -> Any:
        """As SGLang's; what was computed from images by the old weights is forgotten."""
        if mm_utils.embedding_cache is not None:
            mm_utils.embedding_cache.clear()
        return super().load_weights(weights)  # type: ignore[misc]

    def _rows(self, item: Any) -> torch.Tensor:
        folder, device = Path(os.environ["DESKHAND_IMAGE_FOLDER"]), self.visual.device
        if self._levels is None:
            self._levels = torch.from_numpy(np.load(folder / LEVELS)).to(device)
        image = torch.from_numpy(np.load(folder / item.image_file)).to(device)
        settings = self.visual.patch_embed
        return patches(
            image,
            self._levels,
            patch=settings.patch_size,
            merge=self.visual.spatial_merge_size,
            temporal=settings.temporal_patch_size,
        )


class Qwen3VLForConditionalGeneration(FromSpool, qwen3_vl.Qwen3VLForConditionalGeneration):
    """The dense sizes."""


class Qwen3VLMoeForConditionalGeneration(FromSpool, qwen3_vl_moe.Qwen3VLMoeForConditionalGeneration):
    """The mixtures of experts."""


EntryClass = [Qwen3VLForConditionalGeneration, Qwen3VLMoeForConditionalGeneration]
