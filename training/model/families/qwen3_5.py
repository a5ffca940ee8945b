"""Qwen3.5, dense and mixture of experts, and its text model alone.

Three of four blocks are gated delta nets, which keep a state instead of keys and values
(`training.model.delta_net`); the fourth attends to everything before, through a gate. The vision tower is
Qwen3-VL's without deepstack.
"""

from typing import Any

from training.model.delta_net import use_bounded_state
from training.model.families.dense_text import DenseText
from training.model.families.qwen3_vl import Qwen3VL


class Qwen35(Qwen3VL):
    """With its vision tower."""

    lean_blocks = ()
    keeps_state = True

    def prepare_training(self, model: Any) -> None:
        use_bounded_state(self.text(model))

    def is_stored_transposed(self, name: str, shape: tuple[int, ...]) -> bool:
        return False


class Qwen35Text(DenseText):
    """Without."""

    lean_blocks = ()
    keeps_state = True

    def prepare_training(self, model: Any) -> None:
        use_bounded_state(self.text(model))
