"""The config of each row of `benchmarks.gpu.sizes`, as transformers has it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from transformers import (
    PretrainedConfig,
    Qwen2_5_VLConfig,
    Qwen3_5Config,
    Qwen3Config,
    Qwen3VLConfig,
)

from benchmarks.gpu.sizes import Size

CONTEXT = 262_144
"""Tokens that positions reach to."""


def config_of(size: Size, layers: int, token_id: Callable[[str], int]) -> PretrainedConfig:
    """Of `layers` text blocks, 0 = all; `token_id` knows the published ids."""
    text = _text(size, layers) | {"eos_token_id": token_id("<|im_end|>")}
    if size.family == "qwen3":
        return Qwen3Config(**text, architectures=["Qwen3ForCausalLM"])
    made: dict[str, Callable[..., PretrainedConfig]] = {
        "qwen2_5_vl": Qwen2_5_VLConfig,
        "qwen3_5": Qwen3_5Config,
        "qwen3_vl": Qwen3VLConfig,
    }
    kind = made[size.family]
    text["rope_parameters"] |= _sections(size)
    config = kind(
        text_config=text,
        vision_config=_vision(size),
        image_token_id=token_id("<|image_pad|>"),
        video_token_id=token_id("<|video_pad|>"),
        vision_start_token_id=token_id("<|vision_start|>"),
        vision_end_token_id=token_id("<|vision_end|>"),
        tie_word_embeddings=size.is_tied,
        architectures=[kind.__name__.replace("Config", "ForConditionalGeneration")],
    )
    if size.family == "qwen3_5":
        # As published: SGLang reads it, transformers derives `layer_types` from it and leaves it out.
        config.text_config.full_attention_interval = 4
    return config


def _text(size: Size, layers: int) -> dict[str, Any]:
    found: dict[str, Any] = {
        "vocab_size": size.vocabulary,
        "hidden_size": size.hidden,
        "intermediate_size": size.intermediate,
        "num_hidden_layers": layers or size.layers,
        "num_attention_heads": size.heads,
        "num_key_value_heads": size.kv_heads,
        "max_position_embeddings": 128_000 if size.family == "qwen2_5_vl" else CONTEXT,
        "rms_norm_eps": 1e-6,
        "rope_parameters": {"rope_type": "default", "rope_theta": _theta(size)},
        "tie_word_embeddings": size.is_tied,
    }
    if size.family != "qwen2_5_vl":
        found["head_dim"] = size.head_width
    if size.linear_heads:
        found |= {f"linear_num_{kind}_heads": size.linear_heads for kind in ("key", "value")}
        found |= {f"linear_{kind}_head_dim": size.linear_width for kind in ("key", "value")}
    return found


def _theta(size: Size) -> float:
    return {"qwen2_5_vl": 1e6, "qwen3_5": 1e7}.get(size.family, 5e6)


def _sections(size: Size) -> dict[str, Any]:
    """How time, height and width share the frequencies of a head."""
    if size.family == "qwen2_5_vl":
        return {"mrope_section": [16, 24, 24]}
    if size.family == "qwen3_5":
        return {"mrope_section": [11, 11, 10], "mrope_interleaved": True, "partial_rotary_factor": 0.25}
    quarter = size.head_width // 16
    # 24, 20, 20 for a head of 128.
    section = [size.head_width // 2 - 5 * quarter, 5 * quarter // 2, 5 * quarter // 2]
    return {"mrope_section": section, "mrope_interleaved": True}


def _vision(size: Size) -> dict[str, Any]:
    found: dict[str, Any] = {
        "depth": size.vision_depth,
        "hidden_size": size.vision_hidden,
        "intermediate_size": size.vision_intermediate,
        "num_heads": size.vision_heads,
        "patch_size": size.patch,
        "spatial_merge_size": 2,
        "temporal_patch_size": 2,
        "out_hidden_size": size.hidden,
    }
    if size.family == "qwen2_5_vl":
        return found | {"window_size": 112, "fullatt_block_indexes": list(size.whole_blocks)}
    found["num_position_embeddings"] = 2304
    # Of Qwen3.5's published configs too, where it is empty: SGLang takes Qwen3-VL's otherwise.
    return found | {"deepstack_visual_indexes": list(size.deepstack)}
