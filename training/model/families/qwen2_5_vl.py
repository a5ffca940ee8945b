"""Qwen2.5-VL, and what was trained from it: UI-TARS-1.5, GUI-Owl-7B, Holo1.5.

Its tower attends within windows in all blocks but a few, which see a whole image. Rope positions of a still
image are those of Qwen3-VL: only a video's time is scaled. Checkpoints name the text model `model` and the
tower `visual`, as the first version of transformers did.
Shapes: R patch rows of all images, N images, W windows.
"""

import types
from collections.abc import Sequence
from typing import Any

import torch
from transformers import vision_utils
from transformers.models.qwen2_5_vl.modeling_qwen2_5_vl import Qwen2_5_VLDecoderLayer

from training.model.families.contract import TowerInputs
from training.model.families.qwen_vision import QwenVision
from training.model.packed_attention import Bounds, packed_vision_attention
from training.render.rendered_sequence import Grid


class Qwen25VL(QwenVision):
    """A windowed tower without deepstack."""

    lean_blocks = (Qwen2_5_VLDecoderLayer,)

    def use_quick_paths(self, model: Any, device: torch.device) -> None:
        super().use_quick_paths(model, device)
        if device.type == "cpu":
            return
        tower = self.tower(model)
        for number, block in enumerate(tower.blocks):
            if number not in tower.fullatt_block_indexes:
                block.attn.forward = types.MethodType(attend_within_windows, block.attn)

    def tower_inputs(self, model: Any, grids: Sequence[Grid]) -> TowerInputs:
        """Also window_index [R / 4], the order of merged patches by window, and ends of windows. [W + 1]"""
        tower = self.tower(model)
        index, ends = vision_utils.get_vision_window_index(
            torch.tensor(list(grids), dtype=torch.long),
            spatial_merge_size=tower.spatial_merge_size,
            window_size=tower.window_size,
            patch_size=tower.patch_size,
        )
        windows: TowerInputs = {"window_index": index, "cu_window_seqlens": ends}
        return super().tower_inputs(model, grids) | windows | {"window_lengths": ends.diff().tolist()}

    def see(self, tower: Any, pixels: torch.Tensor, grids: Any, inputs: TowerInputs) -> list[torch.Tensor]:
        extra: dict[str, Any] = dict(inputs)
        if extra:
            extra["windows"] = Bounds(extra["cu_window_seqlens"], extra.pop("window_lengths"))
        return super().see(tower, pixels, grids, extra)

    def checkpoint_name(self, name: str) -> str:
        for long, short in (("model.visual.", "visual."), ("model.language_model.", "model.")):
            if name.startswith(long):
                return short + name.removeprefix(long)
        return name


def attend_within_windows(
    self: Any, hidden_states: torch.Tensor, windows: Bounds | None = None, **kwargs: Any
) -> torch.Tensor:
    """`packed_vision_attention` of a block that does not see whole images. [P, hidden] -> [P, hidden]"""
    return packed_vision_attention(self, hidden_states, **(kwargs | {"packed": windows}))
