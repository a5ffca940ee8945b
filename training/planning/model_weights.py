"""Whether the weights of a model folder are those of its config.json, found from headers without torch.

What a config leaves out has a default in transformers; a side that depends on it is not compared.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from math import prod
from pathlib import Path
from typing import Any

from training.planning.model_families import ModelFamily
from training.planning.model_json import (
    STATE,
    block_kinds,
    is_tied,
    num_deepstack,
    num_experts,
    read_object,
    text_part,
    vision_part,
)
from training.planning.weight_files import INDEX, PICKLES, SINGLE, StoredTensor

FLOATS = ("F64", "F32", "F16", "BF16")
SHORT, LONG = "model.", "model.language_model."
PREFIXES = {"qwen2_5_vl": (SHORT, LONG), "qwen3_vl": (LONG,), "qwen3_5": (LONG,)}
"""What stands before the names of the text model, where it is not the first one alone."""
BIASED = ("qwen2", "qwen2_5_vl")
"""Types whose queries, keys and values have a bias, whatever the config says."""
HEAD_WIDTHS = {"qwen3": 128, "qwen3_vl": 128} | dict.fromkeys(("qwen3_5", "qwen3_5_moe", "qwen3_5_text"), 256)
"""Of types whose heads do not share the width where the config does not say how wide one is."""
EXPERTS = (".experts.gate_up_proj", ".experts.down_proj")
"""How the names end of tensors that hold a matrix per expert. [experts, out, in]"""
TURNED = "qwen3_vl_moe"
"""The type whose published ones are [experts, in, out]."""

# Tables of weights as NAME:SIDE,SIDE. A side is a number, a key of config.json, or made of some (`_sizes`).
NORMS = "input_layernorm.weight:hidden_size post_attention_layernorm.weight:hidden_size"
ATTENDING = (
    "self_attn.q_proj.weight:asked,hidden_size self_attn.k_proj.weight:keys,hidden_size "
    "self_attn.v_proj.weight:keys,hidden_size self_attn.o_proj.weight:hidden_size,queries "
)
HEAD_NORMS = "self_attn.q_norm.weight:head self_attn.k_norm.weight:head "
BIASES = "self_attn.q_proj.bias:asked self_attn.k_proj.bias:keys self_attn.v_proj.bias:keys "
LAST_BIAS = "self_attn.o_proj.bias:hidden_size "
STATEFUL = (
    "linear_attn.A_log:states linear_attn.dt_bias:states linear_attn.norm.weight:linear_value_head_dim "
    "linear_attn.conv1d.weight:mixed,1,linear_conv_kernel_dim linear_attn.out_proj.weight:hidden_size,values "
    "linear_attn.in_proj_qkv.weight:mixed,hidden_size linear_attn.in_proj_z.weight:values,hidden_size "
    "linear_attn.in_proj_a.weight:states,hidden_size linear_attn.in_proj_b.weight:states,hidden_size"
)
GATED = (
    "gate_proj.weight:INNER,hidden_size up_proj.weight:INNER,hidden_size down_proj.weight:hidden_size,INNER "
)
GATED_BIASES = "gate_proj.bias:INNER up_proj.bias:INNER down_proj.bias:hidden_size"
ROUTER, SHARED_GATE = "gate.weight:experts,hidden_size ", "shared_expert_gate.weight:1,hidden_size"
STACKED = "experts.gate_up_proj:experts,both,hidden_size experts.down_proj:experts,hidden_size,inner"
TOWER = "patch_embed.proj.weight:hidden_size,in_channels,temporal_patch_size,patch_size,patch_size "
TOWER_BLOCK = "norm1.weight:hidden_size attn.qkv.weight:three,hidden_size "
PLAIN_TOWER = (
    "merger.linear_fc2.weight:out_hidden_size,merged pos_embed.weight:num_position_embeddings,hidden_size",
    "mlp.linear_fc1.weight:intermediate_size,hidden_size",
)
WINDOWED_TOWER = (
    "merger.mlp.2.weight:out_hidden_size,merged",
    PLAIN_TOWER[1].replace("linear_fc1", "gate_proj"),
)
"""Of the whole tower and of each block, where it has windows."""
DEEPSTACK = "deepstack_merger_list."
PIECES, PIECE_BYTES = 64, 4096
"""How much of two large tensors is compared."""
ADAPTER = "adapter_config.json"
Sides = tuple[int | None, ...]
Sizes = dict[str, int | None]


def weight_problem(folder: Path, family: ModelFamily, tensors: Mapping[str, StoredTensor]) -> str | None:
    """Why the folder's weights cannot be used, in words; None = nothing. Raises ValueError and OSError."""
    if (folder / ADAPTER).exists():
        return (
            f"{folder / ADAPTER}: transformers would put an adapter on these weights. Merge it into them, "
            "or take its files away"
        )
    if not tensors:
        if any((folder / name).is_file() for name in PICKLES):
            return None  # transformers reads it, and its header only by running it
        return f"{folder} has no {SINGLE} and no {INDEX} with the files that it names: download the weights"
    for name, tensor in tensors.items():
        if tensor.dtype not in FLOATS:
            return (
                f"{tensor.file}: {name} is {tensor.dtype}, and quantised weights cannot be trained; choose "
                "the model's folder in bfloat16"
            )
    return next(_problems(folder, family, read_object(folder / "config.json"), tensors), None)


def targets_without_layer(names: Iterable[str], targets: Iterable[str]) -> list[str]:
    """Names of `lora.targets` that no layer of the text blocks has, by the names of all weights."""
    # One tensor holds the matrices of all experts, however they are stored: it takes no adapter.
    layers = [
        name for name in names if name.endswith(".weight") and ".layers." in name and ".experts." not in name
    ]
    found = {name.split(".")[-2] for name in layers}
    return [one for one in targets if found and one not in found]


def _problems(
    folder: Path, family: ModelFamily, config: dict[str, Any], tensors: Mapping[str, StoredTensor]
) -> Iterator[str]:
    where, prefixes = folder / "config.json", PREFIXES.get(family.name, (SHORT,))
    prefix = next((one for one in prefixes if f"{one}embed_tokens.weight" in tensors), None)
    if prefix is None:
        names = " or ".join(f"{one}embed_tokens.weight" for one in prefixes)
        yield f"{folder} has no weight {names}, which {family.label} begins with: download it anew"
        return
    expected = expected_weights(config, prefix, are_split=any(".mlp.experts.0." in name for name in tensors))
    for name, sides in expected.items():
        is_turned = config["model_type"] == TURNED and name.endswith(EXPERTS)
        if name not in tensors:
            because = ", and tie_word_embeddings is not true" if name == "lm_head.weight" else ""
            yield f"{where} wants a weight {name}{because}; {folder} has none"
        elif not any(
            _fits(tensors[name].shape, one)
            for one in (sides, (sides[0], *sides[:0:-1]) if is_turned else sides)
        ):
            wanted = tuple("any" if side is None else side for side in sides)
            yield f"{tensors[name].file}: {name} is {tensors[name].shape}, and {where} wants {wanted}"
    head = tensors.get("lm_head.weight")
    if is_tied(config) and head is not None and not _are_equal(head, tensors[f"{prefix}embed_tokens.weight"]):
        yield (
            f"{where} has tie_word_embeddings true, but lm_head.weight in {head.file.name} is another than "
            "embed_tokens.weight: set it to false"
        )
    num_blocks, blocks = len(block_kinds(config)), f"{prefix}layers."
    for name in sorted(tensors.keys() - expected.keys()):
        number, _, rest = name.removeprefix(blocks).partition(".")
        is_inside = num_blocks and name.startswith(blocks) and not rest.endswith("rotary_emb.inv_freq")
        if is_inside and number.isdecimal() and int(number) >= num_blocks:
            yield f"{where} has num_hidden_layers {num_blocks}, and the weights have {name}"
        elif DEEPSTACK in name and name.endswith("linear_fc1.bias"):
            yield f"{where} has too few deepstack_visual_indexes for the weight {name}: name one for each"
        elif is_inside or re.sub(r"\.\d+\.", ".0.", name) in expected:
            yield f"{where} has no place for the weight {name}: do its model_type and its counts fit?"


def expected_weights(config: dict[str, Any], prefix: str, *, are_split: bool = False) -> dict[str, Sides]:
    """Of text model, head and tower. {name: sides in the model}; `are_split`: each expert has its own."""
    model_type, text = str(config["model_type"]), text_part(config)
    sizes, has_bias = _sizes(model_type, text), text.get("attention_bias") and model_type != "mistral"
    attending = ATTENDING + (HEAD_NORMS if model_type.startswith("qwen3") else "")
    attending += BIASES if has_bias or model_type in BIASED else ""
    attending += LAST_BIAS if has_bias and model_type not in BIASED else ""
    mlp = GATED + (GATED_BIASES if model_type == "llama" and text.get("mlp_bias") else "")
    found = _rows(prefix, "embed_tokens.weight:vocab_size,hidden_size norm.weight:hidden_size", sizes)
    for number, kind in enumerate(block_kinds(config)):
        block, step = f"{prefix}layers.{number}.", text.get("decoder_sparse_step") or 1
        is_dense = "moe" not in model_type or number in (text.get("mlp_only_layers") or ())
        found |= _rows(block, NORMS, sizes) | _rows(block, STATEFUL if kind == STATE else attending, sizes)
        if is_dense or (number + 1) % step:
            found |= _rows(f"{block}mlp.", mlp.replace("INNER", "intermediate_size"), sizes)
        else:
            found |= _experts(f"{block}mlp.", sizes, are_split=are_split)
    if not is_tied(config):
        found |= _rows("", "lm_head.weight:vocab_size,hidden_size", sizes)
    return found | _tower(config, "visual." if prefix == SHORT else "model.visual.")


def _experts(mlp: str, sizes: Sizes, *, are_split: bool) -> dict[str, Sides]:
    found = _rows(mlp, ROUTER, sizes)
    if sizes.get("shared_expert_intermediate_size"):
        found |= _rows(mlp, SHARED_GATE, sizes)
        shared = GATED.replace("INNER", "shared_expert_intermediate_size")
        found |= _rows(f"{mlp}shared_expert.", shared, sizes)
    if not are_split:
        return found | _rows(mlp, STACKED, sizes)
    for number in range(sizes["experts"] or 0):
        found |= _rows(f"{mlp}experts.{number}.", GATED.replace("INNER", "inner"), sizes)
    return found


def _tower(config: dict[str, Any], prefix: str) -> dict[str, Sides]:
    """Some of its weights, which show every size that config.json names."""
    model_type, vision = str(config["model_type"]), vision_part(config)
    if not vision:
        return {}
    sizes = _sizes(model_type, vision)
    whole, block = WINDOWED_TOWER if model_type == "qwen2_5_vl" else PLAIN_TOWER
    found = _rows(prefix, TOWER + whole, sizes)
    for number in range(sizes.get("depth") or 0):
        found |= _rows(f"{prefix}blocks.{number}.", TOWER_BLOCK + block, sizes)
    for number in range(num_deepstack(config)):
        found |= _rows(f"{prefix}{DEEPSTACK}{number}.", "linear_fc1.bias:merged", sizes)
    return found


def _rows(prefix: str, table: str, sizes: Sizes) -> dict[str, Sides]:
    """The weights of a table; None in their sides = of no known length."""
    rows = (row.split(":") for row in table.split())
    return {
        prefix + name: tuple(int(side) if side.isdigit() else sizes.get(side) for side in sides.split(","))
        for name, sides in rows
    }


def _sizes(model_type: str, part: dict[str, Any]) -> Sizes:
    """The counts in a part of config.json by key, and what is made of them."""
    found = {key: value for key, value in part.items() if type(value) is int}
    of, is_gated = found.get, model_type.startswith("qwen3_5")
    width, heads, merge = of("hidden_size"), of("num_attention_heads"), of("spatial_merge_size")
    head = HEAD_WIDTHS.get(model_type) or (width // heads if width and heads else None)
    head = head if model_type == "qwen2_5_vl" else of("head_dim", head)
    cached = heads if part.get("num_key_value_heads", 0) is None else of("num_key_value_heads")
    states, inner = of("linear_num_value_heads"), of("moe_intermediate_size")
    keys = _times(2, of("linear_num_key_heads"), of("linear_key_head_dim"))
    values = _times(states, of("linear_value_head_dim"))
    made = {
        "head": head, "queries": _times(heads, head), "asked": _times(2 if is_gated else 1, heads, head),
        "keys": _times(cached, head), "experts": num_experts(part) or None, "inner": inner,
        "both": _times(2, inner), "three": _times(3, width), "merged": _times(width, merge, merge),
        "states": states, "values": values, "mixed": keys + values if keys and values else None,
    }  # fmt: skip
    return found | made


def _times(*counts: int | None) -> int | None:
    return prod(count for count in counts if count) if all(counts) else None


def _fits(shape: tuple[int, ...], sides: Sides) -> bool:
    return len(shape) == len(sides) and all(
        want in (None, have) for have, want in zip(shape, sides, strict=True)
    )


def _are_equal(one: StoredTensor, other: StoredTensor) -> bool:
    """Whether pieces of both, spread evenly, are the same; the trainer compares all when it reads them."""
    length = one.stop - one.start
    places = range(0, length, max(length // PIECES, PIECE_BYTES))
    return (length, one.dtype) == (other.stop - other.start, other.dtype) and all(
        _piece(one, place) == _piece(other, place) for place in places
    )


def _piece(tensor: StoredTensor, place: int) -> bytes:
    with tensor.file.open("rb") as file:
        file.seek(tensor.start + place)
        return file.read(min(PIECE_BYTES, tensor.stop - tensor.start - place))
