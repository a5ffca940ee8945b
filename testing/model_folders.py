"""Model folders that pre-flight finds good, made without torch: their weights are a hole on the disk."""

from __future__ import annotations

import json
from math import prod
from pathlib import Path
from typing import Any

from training.planning.model_families import family_of_config, family_of_type
from training.planning.model_json import text_part
from training.planning.model_weights import PREFIXES, SHORT, expected_weights

CHAT = ("<|im_start|>", "<|im_end|>")
QWEN = (*CHAT, "<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>")
SIZES = {
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "vocab_size": 320,
}


def write_model_folder(folder: Path, model_type: str, tokens: tuple[str, ...] = QWEN, **values: Any) -> Path:
    """A folder of a supported type; `values` go into what its config.json says of the text model."""
    folder.mkdir(exist_ok=True)
    text = {**SIZES, **values}
    if family_of_type(model_type).has_vision:
        text = {"text_config": text, "vision_config": {"patch_size": 16}}
    config = {"model_type": model_type, **text}
    (folder / "config.json").write_text(json.dumps(config))
    added = [{"id": number, "content": token} for number, token in enumerate(tokens)]
    (folder / "tokenizer.json").write_text(json.dumps({"added_tokens": added, "model": {"vocab": {}}}))
    (folder / "preprocessor_config.json").write_text(json.dumps({"patch_size": 16}))
    write_weights(folder, config)
    return folder


def write_weights(folder: Path, config: dict[str, Any]) -> None:
    """The weights that `config` wants, all of them 0."""
    prefix = PREFIXES.get(family_of_config(config).name, (SHORT,))[0]
    header, end = {}, 0
    for name, sides in expected_weights(config, prefix).items():
        shape = [side or text_part(config)["hidden_size"] for side in sides]
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [end, end + 2 * prod(shape)]}
        end += 2 * prod(shape)
    text = json.dumps(header).encode()
    with (folder / "model.safetensors").open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        file.truncate(8 + len(text) + end)
