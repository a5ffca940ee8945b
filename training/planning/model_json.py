"""The JSON files of a model folder, read with errors that name the file."""

import json
from pathlib import Path
from typing import Any

STATE, ATTENTION = "linear_attention", "full_attention"


def read_object(path: Path) -> dict[str, Any]:
    """The JSON object in `path`. Raises ValueError that names the file, and OSError."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:  # bytes that are no text raise a ValueError, too
        raise ValueError(f"{path} is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise ValueError(f"{path} holds no JSON object")
    return found


def text_part(config: dict[str, Any]) -> dict[str, Any]:
    """What a config.json says of the text model: its `text_config`, or all of it."""
    part = config.get("text_config")
    return part if isinstance(part, dict) and part else config


def vision_part(config: dict[str, Any]) -> dict[str, Any]:
    """What a config.json says of the vision tower; empty without one."""
    part = config.get("vision_config")
    return part if isinstance(part, dict) else {}


def is_tied(config: dict[str, Any]) -> bool:
    """Whether the head is the embedding, as transformers reads it: of the whole model, with one exception."""
    is_old = config.get("model_type") == "qwen2_5_vl"  # whose older folders say it of the text model alone
    return bool(
        config.get("tie_word_embeddings") or (is_old and text_part(config).get("tie_word_embeddings"))
    )


def block_kinds(config: dict[str, Any]) -> list[str]:
    """What each text block does, as transformers reads it: STATE = it keeps one, and no keys and values."""
    text = text_part(config)
    if isinstance(kinds := text.get("layer_types"), list):
        return kinds
    count, interval = text.get("num_hidden_layers", 0), text.get("full_attention_interval", 4)
    has_states = str(config.get("model_type")).startswith("qwen3_5")
    return [STATE if has_states and (number + 1) % interval else ATTENTION for number in range(count)]


def num_experts(text: dict[str, Any]) -> int:
    """Of each block; 0 = it is dense. transformers writes it under the second name."""
    return int(text.get("num_experts") or text.get("num_local_experts") or 0)


def num_deepstack(config: dict[str, Any]) -> int:
    """Levels of a tower that text blocks add; three by default, as transformers has it."""
    vision = vision_part(config)
    has_levels = vision and str(config.get("model_type")).startswith("qwen3_vl")
    return len(vision.get("deepstack_visual_indexes", (8, 16, 24))) if has_levels else 0
