"""What Qwen3-VL's vision tower reads besides pixels, made on the host before the forward.

The tower would find these itself from the grids, reading numbers back from the device several times per
forward; made while collating they are ready before the device needs them.
Shapes: R patch rows of all images, N images.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from transformers import vision_utils

from training.render.rendered_sequence import Grid


def vision_inputs(visual: Any, grids: Sequence[Grid]) -> dict[str, torch.Tensor | list[int]]:
    """Keyword arguments for `visual` (a transformers `Qwen3VLVisionModel`); tensors on the CPU.

    position_ids [R, 2], interp_indices and interp_weights [R, 4] of the learned position table, cu_seqlens
    [N + 1] (each image attends to itself only). And "lengths", what cu_seqlens says, for the host. [N]
    """
    table = torch.tensor(list(grids), dtype=torch.long)
    indices, weights = vision_utils.get_vision_interpolation_indices_and_weights(
        table,
        num_grid_per_side=visual.num_grid_per_side,
        mode=visual.interpolation_mode,
        align_corners=visual.interpolation_align_corners,
        spatial_merge_size=visual.spatial_merge_size,
    )
    return {
        "position_ids": vision_utils.get_vision_position_ids(table, visual.spatial_merge_size),
        "interp_indices": indices,
        "interp_weights": weights,
        "cu_seqlens": vision_utils.get_vision_cu_seqlens(table),
        "lengths": [height * width for frames, height, width in grids for _ in range(frames)],
    }
