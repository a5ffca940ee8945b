"""The classes of transformers that make up a Qwen3-VL, dense and mixture of experts.

Both families share their parts word for word, but each has its own classes for them. The experts differ:
one tensor holds a matrix per expert, [experts, out, in] in the model and [experts, in, out] in checkpoints
(`transformers.conversion_mapping`, "qwen3_vl_moe").
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch import nn
from transformers.models.qwen3_vl.modeling_qwen3_vl import Qwen3VLVisionAttention, Qwen3VLVisionPatchEmbed
from transformers.models.qwen3_vl_moe.modeling_qwen3_vl_moe import (
    Qwen3VLMoeVisionAttention,
    Qwen3VLMoeVisionPatchEmbed,
)

VISION_ATTENTIONS = (Qwen3VLVisionAttention, Qwen3VLMoeVisionAttention)
PATCH_EMBEDS = (Qwen3VLVisionPatchEmbed, Qwen3VLMoeVisionPatchEmbed)
EXPERTS = (".mlp.experts.gate_up_proj", ".mlp.experts.down_proj")
"""How the names of the experts' tensors end."""


def text_model(model: nn.Module) -> Any:
    """The `Qwen3VLTextModel` (or mixture of experts) of a Qwen3-VL with its head."""
    whole: Any = model
    return whole.model.language_model


def vision_tower(model: nn.Module) -> Any:
    """The `Qwen3VLVisionModel` (or mixture of experts) of a Qwen3-VL with its head."""
    whole: Any = model
    return whole.model.visual


def modules_of(model: nn.Module, classes: tuple[type[nn.Module], ...]) -> Iterator[Any]:
    """Every module of `model` that is one of `classes`."""
    return (module for module in model.modules() if isinstance(module, classes))


def is_stored_transposed(name: str, shape: tuple[int, ...]) -> bool:
    """A checkpoint has the last two dimensions of this weight the other way round.

    Of square ones transformers cannot tell, and reads them as they lie in the model.
    """
    return name.endswith(EXPERTS) and shape[-1] != shape[-2]
