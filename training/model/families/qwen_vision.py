"""What Qwen's vision-language families share: their parts, rope positions and the tower's quick paths.

Shapes: R patch rows of all images, N images.
"""

from collections.abc import Sequence
from typing import Any

import torch
from transformers import AutoModelForImageTextToText, vision_utils

from training.model.cpu_vision_tower import use_cpu_paths, use_matmul_embedding
from training.model.families.contract import Family, TowerInputs
from training.model.packed_attention import Bounds, use_packed_vision
from training.render.rendered_sequence import Grid


class QwenVision(Family):
    """A text model and a vision tower side by side."""

    auto_class = AutoModelForImageTextToText

    def text(self, model: Any) -> Any:
        return model.model.language_model

    def tower(self, model: Any) -> Any:
        return model.model.visual

    def positions(self, rows: torch.Tensor) -> torch.Tensor:
        return rows

    def use_quick_paths(self, model: Any, device: torch.device) -> None:
        tower = self.tower(model)
        if device.type == "cpu":
            use_cpu_paths(tower)
        else:
            use_matmul_embedding(tower)
            use_packed_vision(tower)

    def tower_inputs(self, model: Any, grids: Sequence[Grid]) -> TowerInputs:
        """position_ids [R, 2], cu_seqlens [N + 1] (an image attends to itself only) and lengths [N]."""
        table = torch.tensor(list(grids), dtype=torch.long)
        return {
            "position_ids": vision_utils.get_vision_position_ids(table, self.tower(model).spatial_merge_size),
            "cu_seqlens": vision_utils.get_vision_cu_seqlens(table),
            "lengths": [height * width for frames, height, width in grids for _ in range(frames)],
        }

    def see(self, tower: Any, pixels: torch.Tensor, grids: Any, inputs: TowerInputs) -> list[torch.Tensor]:
        extra: dict[str, Any] = dict(inputs)
        if extra:
            extra["packed"] = Bounds(extra["cu_seqlens"], extra.pop("lengths"))
        seen = tower(pixels, grid_thw=grids, return_dict=True, **extra)
        return [seen.pooler_output, *getattr(seen, "deepstack_features", ())]
