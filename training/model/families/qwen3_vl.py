"""Qwen3-VL, dense and mixture of experts: Instruct and Thinking alike.

Both kinds share their parts word for word, but each has its own classes for them. The experts differ:
one tensor holds a matrix per expert, [experts, out, in] in the model and [experts, in, out] in checkpoints
(`transformers.conversion_mapping`, "qwen3_vl_moe").
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import nn
from transformers import vision_utils
from transformers.models.qwen3_vl.modeling_qwen3_vl import Qwen3VLTextDecoderLayer

from training.model.families.contract import TowerInputs
from training.model.families.qwen_vision import QwenVision
from training.planning.model_weights import EXPERTS
from training.render.rendered_sequence import Grid


class Qwen3VL(QwenVision):
    """Its tower adds to the first text blocks, too (deepstack), and has a learned table of positions."""

    lean_blocks: tuple[type[nn.Module], ...] = (Qwen3VLTextDecoderLayer,)

    def prepare_training(self, model: Any) -> None:
        text = self.text(model)
        text._deepstack_process = partial(_add_level, text._deepstack_process)

    def tower_inputs(self, model: Any, grids: Sequence[Grid]) -> TowerInputs:
        """Also interp_indices and interp_weights of the learned position table. [R, 4]"""
        tower = self.tower(model)
        indices, weights = vision_utils.get_vision_interpolation_indices_and_weights(
            torch.tensor(list(grids), dtype=torch.long),
            num_grid_per_side=tower.num_grid_per_side,
            mode=tower.interpolation_mode,
            align_corners=tower.interpolation_align_corners,
            spatial_merge_size=tower.spatial_merge_size,
        )
        return super().tower_inputs(model, grids) | {"interp_indices": indices, "interp_weights": weights}

    def is_stored_transposed(self, name: str, shape: tuple[int, ...]) -> bool:
        """Of square ones transformers cannot tell, and reads them as they lie in the model."""
        return name.endswith(EXPERTS) and shape[-1] != shape[-2]


def _add_level(
    original: Callable[..., torch.Tensor],
    hidden: torch.Tensor,
    mask: torch.Tensor | None,
    level: torch.Tensor,
) -> torch.Tensor:
    """In place of `Qwen3VLTextModel._deepstack_process`; without a mask, `level` is 0 where no image is."""
    return hidden + level.to(hidden.dtype) if mask is None else original(hidden, mask, level)
