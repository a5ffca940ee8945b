"""What is changed in every model that SGLang serves for us: runs inside SGLang's processes.

- Logits in fp32 (`--enable-fp32-lm-head`) come out of the product of bf16 tensors; SGLang 0.5.16 would copy
  the head to fp32 for every token, which doubles the cost of a token's weights.
- The names of its parameters are written beside the pixels, where a weight sync compares them.

And in those with a vision tower:
- Pixels come from the spool (`training.sampler.sglang.screenshot_spool`) when the tower runs, and only then.
- New weights drop SGLang's cache of image embeddings. SGLang 0.5.16 keys it by image alone and keeps it
  through weight updates and cache flushes, so that a trained tower would be shown its old output.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sglang.srt.layers.logits_processor import LogitsProcessor
from sglang.srt.managers import mm_utils

from training.model.fp32_logits import HALF, fp32_product
from training.sampler.sglang.parameter_names_file import write_names
from training.sampler.sglang.patchify import patchify
from training.sampler.sglang.screenshot_spool import LEVELS


class Fp32Logits(LogitsProcessor):
    """In fp32 when the server was started so."""

    def _compute_lm_head(self, hidden_states: torch.Tensor, lm_head: Any, embedding_bias: Any = None) -> Any:
        weight: Any = getattr(lm_head, "weight", None)
        is_plain = (
            weight is not None and hidden_states.dtype == weight.dtype and not hasattr(lm_head, "set_lora")
        )
        if self.use_fp32_lm_head and is_plain and weight.dtype in HALF:
            return fp32_product(hidden_states, weight)
        return super()._compute_lm_head(hidden_states, lm_head, embedding_bias)


class ServedModel:
    """Mixed in before SGLang's class."""

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self.logits_processor = Fp32Logits(self.config)  # type: ignore[attr-defined]
        names = [name for name, _ in self.named_parameters()]  # type: ignore[attr-defined]
        write_names(Path(os.environ["DESKHAND_IMAGE_FOLDER"]), names)


class SpooledImagesModel(ServedModel):
    """The same for a model with a vision tower."""

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
        if "image_file" not in item.model_specific_data:
            return item.feature.to(device)  # of a request in one of SGLang's own forms
        if self._levels is None:
            self._levels = torch.from_numpy(np.load(folder / LEVELS)).to(device)
        image = torch.from_numpy(np.load(folder / item.image_file)).to(device)
        settings = self.visual.patch_embed
        return patchify(
            image,
            self._levels,
            patch=settings.patch_size,
            merge=self.visual.spatial_merge_size,
            temporal=settings.temporal_patch_size,
        )
