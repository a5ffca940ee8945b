"""Tiny random folders of every family that is trained, as the hub lays them out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from transformers import (
    AutoModelForCausalLM,
    AutoModelForImageTextToText,
    LlamaConfig,
    MistralConfig,
    PretrainedConfig,
    Qwen2_5_VLConfig,
    Qwen2Config,
    Qwen3_5Config,
    Qwen3_5MoeConfig,
    Qwen3_5TextConfig,
    Qwen3Config,
)

from testing.model_folders import SIZES
from training.content.recipes.tiny.make_checkpoint import TinySizes, make_tiny, make_tokenizer, token_id

TEXT: dict[str, type[PretrainedConfig]] = {
    "qwen3": Qwen3Config,
    "qwen2": Qwen2Config,
    "llama": LlamaConfig,
    "mistral": MistralConfig,
}
QWEN3_5 = ("qwen3_5", "qwen3_5_moe", "qwen3_5_text")
NAMES = (*TEXT, "qwen2_5_vl", "qwen3_vl", *QWEN3_5)
"""Model types of which `make_family` makes one; of text models the first is untied, the others are tied."""
VOCABULARY = 400
Values = dict[str, Any]


def make_family(
    folder: Path, model_type: str, *, text: Values | None = None, tower: Values | None = None
) -> Path:
    """Write a random model of about 0.2 million parameters to `folder`; returns it.

    `text` and `tower` replace values of its configs: kernels of engines refuse the smallest widths.
    """
    if model_type == "qwen3_vl":
        sizes = TinySizes(
            text_hidden=64, text_intermediate=128, vision_hidden=32, vision_intermediate=64,
            vocabulary=VOCABULARY,
        )  # fmt: skip
        return make_tiny(folder, sizes=sizes)
    tokenizer = make_tokenizer(VOCABULARY)
    tokenizer.save_pretrained(folder)
    ids = {f"{name}_token_id": token_id(tokenizer, f"<|{name}|>") for name in ("vision_start", "vision_end")}
    ids |= {f"{name}_token_id": token_id(tokenizer, f"<|{name}_pad|>") for name in ("image", "video")}
    ends = {"eos_token_id": token_id(tokenizer, "<|im_end|>"), "pad_token_id": None, "bos_token_id": None}
    own_text = _text(-(-len(tokenizer) // 64) * 64) | ends
    text, tower = text or {}, tower or {}
    state = torch.random.get_rng_state()
    torch.manual_seed(0)
    model: Any
    if model_type == "qwen2_5_vl":
        own_text["rope_parameters"] |= {"mrope_section": [2, 3, 3]}
        config = Qwen2_5_VLConfig(text_config=own_text | text, vision_config=_windowed_tower() | tower, **ids)
        model = AutoModelForImageTextToText.from_config(config)
        _write_processor(folder, 14, "Qwen2_5_VLProcessor", "Qwen2VLVideoProcessor")
    elif model_type in QWEN3_5:
        model = _qwen3_5(model_type, _hybrid(own_text) | text, tower, ids)
        if model_type != "qwen3_5_text":
            _write_processor(folder, 16, "Qwen3VLProcessor", "Qwen3VLVideoProcessor")
    else:
        own = {"tie_word_embeddings": model_type != "qwen3"}
        own |= {"sliding_window": None} if model_type == "mistral" else {}
        model = AutoModelForCausalLM.from_config(TEXT[model_type](**own_text | own | text))
    _shake(model)
    torch.random.set_rng_state(state)
    # As published: one tensor for all experts, of which transformers' own way makes one for each.
    model.save_pretrained(folder, save_original_format=model_type != "qwen3_5_moe")
    return folder


def _text(vocabulary: int) -> dict[str, Any]:
    return {
        **SIZES,
        "vocab_size": vocabulary,
        "max_position_embeddings": 4096,
        "initializer_range": 0.07,
        "rope_parameters": {"rope_type": "default", "rope_theta": 10_000.0},
    }


def _hybrid(text: dict[str, Any]) -> dict[str, Any]:
    """A block with a state, then one that attends; two value heads for each key head."""
    text |= {
        "layer_types": ["linear_attention", "full_attention"],
        **{"linear_num_key_heads": 2, "linear_num_value_heads": 4},
        **{"linear_key_head_dim": 32, "linear_value_head_dim": 16},
        **{"num_experts": 4, "num_experts_per_tok": 2},
        **{"moe_intermediate_size": 32, "shared_expert_intermediate_size": 48},
    }
    text["rope_parameters"] |= {
        **{"partial_rotary_factor": 0.5, "mrope_interleaved": True, "mrope_section": [2, 1, 1]},
    }
    return text


def _qwen3_5(model_type: str, text: dict[str, Any], tower: Values, ids: dict[str, int]) -> Any:
    if model_type == "qwen3_5_text":
        return _conditioned(AutoModelForCausalLM.from_config(_with_interval(Qwen3_5TextConfig(**text))))
    own_tower = {
        "depth": 2, "hidden_size": 32, "intermediate_size": 64, "num_heads": 2, "patch_size": 16,
        "spatial_merge_size": 2, "temporal_patch_size": 2, "out_hidden_size": 64, "initializer_range": 0.07,
        "num_position_embeddings": 64, "deepstack_visual_indexes": [],
    }  # fmt: skip
    kind = Qwen3_5Config if model_type == "qwen3_5" else Qwen3_5MoeConfig
    tied = {"tie_word_embeddings": model_type == "qwen3_5"}
    config = kind(text_config=text | tied, vision_config=own_tower | tower, **ids, **tied)
    _with_interval(config.text_config)
    return _conditioned(AutoModelForImageTextToText.from_config(config))


def _with_interval(config: Any) -> Any:
    """As published: SGLang reads it, transformers derives `layer_types` from it and leaves it out."""
    config.full_attention_interval = config.layer_types.index("full_attention") + 1
    return config


def _conditioned(model: Any) -> Any:
    """Wide taps, or keys are all but 0 before they are normalised; slow decay, whose sums fp32 can hold."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("conv1d.weight"):
                parameter.mul_(6)
            elif name.endswith("A_log"):
                parameter.uniform_(0.02, 0.3).log_()
    return model


def _windowed_tower() -> dict[str, Any]:
    """Windows of 2 x 2 merged patches: a toy screenshot has whole ones and cut ones."""
    return {
        "depth": 3, "hidden_size": 32, "intermediate_size": 64, "num_heads": 2, "patch_size": 14,
        "spatial_merge_size": 2, "temporal_patch_size": 2, "window_size": 56, "fullatt_block_indexes": [1],
        "out_hidden_size": 64, "initializer_range": 0.07,
    }  # fmt: skip


def _shake(model: torch.nn.Module) -> None:
    """Give biases and norms, which begin at 0 and 1, values of their own, or nothing would miss them."""
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 1:
                parameter.add_(0.1 * torch.randn(parameter.shape))


def _write_processor(folder: Path, patch_size: int, kind: str, video: str) -> None:
    settings = {
        "processor_class": kind,
        "patch_size": patch_size,
        "temporal_patch_size": 2,
        "merge_size": 2,
        "image_mean": [0.48, 0.46, 0.41],
        "image_std": [0.27, 0.26, 0.28],
        "min_pixels": 784,
        "max_pixels": 50176,
    }
    for name, of in {
        "preprocessor_config": {"image_processor_type": "Qwen2VLImageProcessor"},
        "video_preprocessor_config": {"video_processor_type": video},
    }.items():
        (folder / f"{name}.json").write_text(json.dumps(of | settings, indent=2) + "\n")
