"""Dense causal text models: Qwen3, Qwen2.5, Llama (and SmolLM2), Mistral.

One file for all: transformers lays them out alike, and what differs (norms of heads, biases) is found by
looking at the blocks.
"""

from typing import Any

import torch
from torch import nn
from transformers import AutoModelForCausalLM
from transformers.models.llama.modeling_llama import LlamaDecoderLayer
from transformers.models.mistral.modeling_mistral import MistralDecoderLayer
from transformers.models.qwen2.modeling_qwen2 import Qwen2DecoderLayer
from transformers.models.qwen3.modeling_qwen3 import Qwen3DecoderLayer

from training.model.families.contract import Family


class DenseText(Family):
    """Sees nothing; one row of positions."""

    auto_class = AutoModelForCausalLM
    lean_blocks: tuple[type[nn.Module], ...] = (
        LlamaDecoderLayer,
        MistralDecoderLayer,
        Qwen2DecoderLayer,
        Qwen3DecoderLayer,
    )

    def text(self, model: Any) -> Any:
        return model.model

    def positions(self, rows: torch.Tensor) -> torch.Tensor:
        return rows[0]
