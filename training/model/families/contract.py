"""What the trainer and the engine must know of a family of models.

Shapes: B rows, T tokens, R patch rows of all images, N images.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from training.render.rendered_sequence import Grid

TowerInputs = dict[str, torch.Tensor | list[int]]
"""What a vision tower reads besides pixels; "lengths" and names that end so are for the host."""


class Family:
    """A family whose text blocks are `model.model`; what a member leaves out is as of a text model."""

    auto_class: Any
    """Of transformers: makes the model with its head."""
    lean_blocks: tuple[type[nn.Module], ...] = ()
    """Text blocks that `training.sampler.engines.lean_decoding` computes alike."""

    keeps_state: bool = False
    """Some blocks keep a state, of one length and changed by padding, instead of keys and values."""

    def text(self, model: Any) -> Any:
        """The text model: embedding, blocks and last norm."""
        return model.model

    def tower(self, model: Any) -> Any:
        """The vision tower; None = the family sees nothing."""
        return None

    def stacks(self, model: Any) -> list[nn.ModuleList]:
        """Blocks of one kind each, which are compiled, recomputed and sharded one by one."""
        tower = self.tower(model)
        return [self.text(model).layers, *([tower.blocks] if tower is not None else [])]

    def positions(self, rows: torch.Tensor) -> torch.Tensor:
        """Rope positions as the model takes them. [3, B, T] time, height, width -> [B, T] or [3, B, T]"""
        raise NotImplementedError

    def use_quick_paths(self, model: Any, device: torch.device) -> None:
        """Let the vision tower take the paths that are fast on `device`."""

    def prepare_training(self, model: Any) -> None:
        """Change what the trainer's own forward needs changed."""

    def tower_inputs(self, model: Any, grids: Sequence[Grid]) -> TowerInputs:
        """Made on the host; the tower itself would read numbers back from the device."""
        raise NotImplementedError

    def see(self, tower: Any, pixels: torch.Tensor, grids: Any, inputs: TowerInputs) -> list[torch.Tensor]:
        """What stands at the image pads, then what the first text blocks add there. [pads, hidden] each"""
        raise NotImplementedError

    def checkpoint_name(self, name: str) -> str:
        """Name of a parameter in checkpoints, as on the hub; names that are so already stay."""
        return name

    def is_stored_transposed(self, name: str, shape: tuple[int, ...]) -> bool:
        """Whether a checkpoint has the last two dimensions of this weight the other way round."""
        return False
