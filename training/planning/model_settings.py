"""Settings of a config.json that no family here computes, or that transformers makes no model of.

They are refused before anything is queued: trained as if they were not there, the model would be another.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any

from training.planning.model_json import ATTENTION, STATE, block_kinds, text_part, vision_part

ROPES: dict[str, tuple[str, ...]] = {
    **{"default": (), "linear": ("factor",), "yarn": ("factor",)},
    "llama3": ("factor", "low_freq_factor", "high_freq_factor"),
}
"""Rotations that depend on a token's position alone, as others do on the longest row, and what each needs."""
ORIGINAL = "original_max_position_embeddings"
NUMBERS = ("rope_theta", *ROPES["llama3"], ORIGINAL)
COUNTS = (
    *("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "vocab_size"),
    *("num_key_value_heads", "head_dim", "full_attention_interval"),
)
"""Keys that the shape of a model is made of."""
MOST = {"num_hidden_layers": 1000, "depth": 1000, "num_experts": 10_000, "num_local_experts": 10_000}
"""What is gone through one by one: a slip of the keyboard must not take this process's memory."""
MAY_BE_NULL = {
    "num_key_value_heads": ("qwen3", "qwen2", "llama", "qwen3_vl", "qwen2_5_vl"),
    "head_dim": ("llama", "mistral", "qwen3_vl_moe", "qwen2_5_vl"),
}
"""Some of them, by the types that make one of the other keys then."""
DIVIDE = {
    "num_key_value_heads": "num_attention_heads",
    "linear_num_key_heads": "linear_num_value_heads",
    "num_heads": "hidden_size",
}
"""Numbers that divide another one; the last is a vision tower's."""
KERNELS = (None, "sdpa", "eager"), "take it out, the trainer chooses its kernels by itself"
ONLY: dict[str, tuple[tuple[object, ...], str]] = {
    "attention_dropout": ((0, None), "set it to 0: the trainer would score other tokens than are sampled"),
    "return_dict": ((True,), "set it to true"),
    "output_router_logits": ((False,), "set it to false, nothing here balances experts"),
    **dict.fromkeys(("attn_implementation", "_attn_implementation"), KERNELS),
}
"""The values that a key may have, its default first, and what to do about anything else."""
KINDS = {
    **{"tie_word_embeddings": bool, "image_token_id": int, "video_token_id": int},
    "deepstack_visual_indexes": list,
    **dict.fromkeys(("rms_norm_eps", "initializer_range"), float),
}
ACTIVATIONS = (
    *("silu", "gelu", "gelu_10", "gelu_accurate", "gelu_fast", "gelu_new", "gelu_python", "gelu_python_tanh"),
    *("gelu_pytorch_tanh", "hardswish", "laplace", "leaky_relu", "linear", "mish", "prelu", "quick_gelu"),
    *("relu", "relu2", "relu6", "sigmoid", "sqrtsoftplus", "swish", "tanh", "xielu"),
)
"""All of `transformers.activations`, which loads torch."""
DTYPES = "bfloat16", "float32", "float16", "float64", "half", "float", "double"
NAMES = {"hidden_act": ACTIVATIONS, "dtype": (*DTYPES, None), "torch_dtype": (*DTYPES, None)}
"""Keys whose value is one of some names, the first of which stands for one that is left out."""
PUBLISHED = "copy it from the config.json that was published with the weights"
SECTION = [16, 24, 24]
"""Numbers of a head that turn with time, height and width where a Qwen2.5-VL does not say."""


def refused_settings(model_type: str, config: dict[str, Any], *, has_vision: bool) -> Iterator[str]:
    """Which keys of config.json are not supported, and what to do."""
    text, tower = text_part(config), vision_part(config)
    if config.get("quantization_config") or text.get("quantization_config"):
        yield "a quantization_config, and quantised weights cannot be trained: choose the model in bfloat16"
    yield from _numbers(model_type, text, tower)
    for part in (text, tower):
        yield from _too_many(part)
    yield from _blocks(model_type, config, text)
    yield from _rope(model_type, text)
    for part in (config, text, tower):
        yield from _values(part)
    if has_vision:
        yield from _parts(model_type, config, text, tower)
    elif isinstance(config.get("text_config"), dict):
        yield f"text_config, which no {model_type} has: take it out"


def _numbers(model_type: str, text: Mapping[str, Any], tower: Mapping[str, Any]) -> Iterator[str]:
    for key in COUNTS:
        value = text.get(key, 1)
        may_be = value is None and model_type in MAY_BE_NULL.get(key, ())
        if not may_be and (type(value) is not int or value <= 0):
            yield f"{key} {value!r}, which is no positive number"
    for key, whole in DIVIDE.items():
        for part in (text, tower):
            if part.get(key) and part.get(whole, 0) % part[key]:
                yield f"{whole} {part.get(whole)}, which is no multiple of {key} {part[key]}"
    for key, whole in (("pad_token_id", "vocab_size"), ("num_experts_per_tok", "num_experts")):
        if (text.get(key) or 0) > text.get(whole, math.inf) - (key == "pad_token_id"):
            yield f"{key} {text.get(key)}, and {whole} is {text[whole]}"


def _too_many(part: Mapping[str, Any]) -> Iterator[str]:
    for key, most in MOST.items():
        if (part.get(key) or 0) > most:
            yield f"{key} {part[key]}, and no model here has more than {most}"


def _values(part: Mapping[str, Any]) -> Iterator[str]:
    """Which values of single keys are not supported."""
    for key, (allowed, remedy) in ONLY.items():
        if part.get(key, allowed[0]) not in allowed:
            yield f"{key} {part[key]!r}: {remedy}"
    for key, kind in KINDS.items():
        if key in part and type(part[key]) is not kind:
            yield f"{key} {part[key]!r}, and transformers takes a {kind.__name__} alone"
        elif kind is float and part.get(key, 0.0) < 0:
            yield f"{key} {part[key]}, which is below 0: {PUBLISHED}"
    for key, names in NAMES.items():
        if part.get(key, names[0]) not in names:
            yield f"{key} {part[key]!r}, which transformers does not know: write the published one"


def _parts(model_type: str, config: dict[str, Any], text: object, tower: object) -> Iterator[str]:
    """Parts of a vision-language model in place of which transformers would make a large one."""
    is_flat = model_type == "qwen2_5_vl" and config.get("text_config") is None and "hidden_size" in config
    lacking = {"text_config": text is config and not is_flat, "vision_config": not tower}
    for key in (key for key, lacks in lacking.items() if lacks):
        yield f"no {key}: {PUBLISHED}"


def _blocks(model_type: str, config: dict[str, Any], text: Mapping[str, Any]) -> Iterator[str]:
    """What speaks against the kinds of the blocks."""
    kinds, has_states = block_kinds(config), model_type.startswith("qwen3_5")
    has_windows = text.get("use_sliding_window") and not text.get("layer_types")
    if model_type == "mistral":
        # Of a config without this key transformers makes windows of 4096 tokens.
        has_windows = text.get("sliding_window", 4096) is not None
    if has_windows or "sliding_attention" in kinds:
        yield "sliding windows of attention: choose a model whose blocks all attend to everything before"
    if other := set(kinds) - {ATTENTION, STATE if has_states else ATTENTION}:
        yield f"{other.pop()} in layer_types, which no block of {model_type} does here: choose another model"
    if len(kinds) != text.get("num_hidden_layers", len(kinds)):
        yield f"{len(kinds)} layer_types for num_hidden_layers {text['num_hidden_layers']}: name one for each"


def _rope(model_type: str, text: Mapping[str, Any]) -> Iterator[str]:
    """What speaks against the rotation of queries and keys."""
    ropes = ROPES | ({"mrope": ()} if model_type == "qwen2_5_vl" else {})
    found = {key: text[key] for key in ("rope_parameters", "rope_scaling") if text.get(key) is not None}
    for key, values in found.items():
        if not isinstance(values, dict):
            yield f"{key} {values!r}, which is no mapping: {PUBLISHED}"
            continue
        kind = str(values.get("rope_type") or values.get("type") or "default")
        if kind not in ropes:
            yield f"{key} of type {kind}, which is not supported; choose one of {', '.join(ropes)}"
        elif lacking := [name for name in ropes[kind] if name not in values]:
            yield f"{key} of type {kind} without {', '.join(lacking)}: add it as it was published"
        for name, value in values.items():
            if isinstance(value, dict):
                yield f"{key} of its own for {name}: write its keys in place of it, for all blocks"
            elif (kind, name, value) == ("yarn", "factor", None):
                yield f"{key} with factor None: write max_position_embeddings / {ORIGINAL} in its place"
            elif name in NUMBERS and not (type(value) in (int, float) and value > 0):
                yield f"{key} with {name} {value!r}, which is no positive number"
    yield from _section(model_type, text)


def _section(model_type: str, text: Mapping[str, Any]) -> Iterator[str]:
    """What speaks against how heads turn with time, height and width."""
    values = text.get("rope_scaling") or text.get("rope_parameters") or {}
    section = values.get("mrope_section", SECTION)
    width, heads = text.get("hidden_size"), text.get("num_attention_heads")
    if not isinstance(section, list) or [type(number) for number in section] != [int] * 3:
        yield f"mrope_section {section!r}: three numbers are needed, of time, height and width"
    elif min(section) < 0:
        yield f"mrope_section {section}, with a number below 0: {PUBLISHED}"
    elif model_type == "qwen2_5_vl" and width and heads and sum(section) != (half := width // heads // 2):
        yield f"mrope_section {section}, whose sum is not half of a head's {2 * half} numbers: {PUBLISHED}"
