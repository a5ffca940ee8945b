"""Settings of a config.json that change what a model computes, and that no family here computes.

They are refused before anything is queued: trained as if they were not there, the model would be another.
"""

from collections.abc import Mapping
from typing import Any

ROPES = ("default", "mrope", "linear", "yarn", "llama3")
"""Rotations that depend on a token's position alone; others also depend on the longest row of a batch."""
MAY_BE_NULL = ("num_key_value_heads", "head_dim")
COUNTS = (
    *("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "vocab_size"),
    *MAY_BE_NULL,
)
"""Keys that the shape of a model is made of."""


def refused_setting(model_type: str, config: Mapping[str, Any], text: Mapping[str, Any]) -> str | None:
    """Which key of config.json is not supported and what to do; `text`: its part about the text model."""
    if config.get("quantization_config") or text.get("quantization_config"):
        return (
            "config.json has a quantization_config, and quantised weights cannot be trained; choose the "
            "model's folder in bfloat16"
        )
    if _has_windows(model_type, text):
        return (
            "config.json asks for sliding windows of attention, which are not supported; choose a model "
            "whose blocks all attend to everything before"
        )
    if (rope := _rope(text)) is not None:
        return rope
    if dropout := text.get("attention_dropout"):
        return (
            f"config.json has attention_dropout {dropout}: the trainer would score other tokens than the "
            "engine samples; set it to 0"
        )
    return _wrong_count(text)


def _has_windows(model_type: str, text: Mapping[str, Any]) -> bool:
    """Whether a block sees only the last tokens."""
    if model_type == "mistral":
        # Of a config without this key transformers makes windows of 4096 tokens.
        return "sliding_window" not in text or text["sliding_window"] is not None
    if "layer_types" in text and text["layer_types"]:
        return any(kind not in ("full_attention", "linear_attention") for kind in text["layer_types"])
    return bool(text.get("use_sliding_window"))


def _rope(text: Mapping[str, Any]) -> str | None:
    """What speaks against the rotation of queries and keys."""
    for key in ("rope_parameters", "rope_scaling"):
        values = text.get(key)
        if not isinstance(values, Mapping):
            continue
        kind = str(values.get("rope_type") or values.get("type") or "default")
        if kind not in ROPES:
            return (
                f"config.json has {key} of type {kind}, which is not supported; choose a model with one of "
                f"{', '.join(ROPES)}"
            )
    return None


def _wrong_count(text: Mapping[str, Any]) -> str | None:
    for key in COUNTS:
        value = text.get(key)
        if key not in text or (value is None and key in MAY_BE_NULL):
            continue
        if type(value) is not int or value <= 0:
            return f"config.json has {key} {value!r}, which is no positive number"
    return None
