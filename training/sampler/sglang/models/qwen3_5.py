"""SGLang's Qwen3.5 with the changes of `training.sampler.sglang.served_model`, and with all rows of M-RoPE.

Attention of SGLang 0.5.16 on CUDA rotates by a fused kernel that reads one position a token: of the three
rows that a token of a picture has, the temporal one. Height and width were lost without a word.
"""

from typing import Any

import torch
from sglang.srt.models import qwen3_5

from training.sampler.sglang.served_model import SpooledImagesModel


class AllRowsAttention(qwen3_5.Qwen3_5AttentionDecoderLayer):
    """Rotates by every row: where there are three, by SGLang's plain way."""

    def forward_prepare_cuda_fused(self, positions: torch.Tensor, hidden_states: torch.Tensor) -> Any:
        """Query, key, value and gate, rotated."""
        is_one_row = positions.ndim == 1
        way = super().forward_prepare_cuda_fused if is_one_row else self.forward_prepare_native
        return way(positions=positions, hidden_states=hidden_states)


qwen3_5.ALL_DECODER_LAYER_TYPES["attention"] = AllRowsAttention


class Qwen3_5ForConditionalGeneration(SpooledImagesModel, qwen3_5.Qwen3_5ForConditionalGeneration):
    """The dense sizes."""


class Qwen3_5MoeForConditionalGeneration(SpooledImagesModel, qwen3_5.Qwen3_5MoeForConditionalGeneration):
    """The mixtures of experts."""


EntryClass = [Qwen3_5ForConditionalGeneration, Qwen3_5MoeForConditionalGeneration]
