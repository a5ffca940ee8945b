"""Whether the weights of a model folder are those of its config.json, found from headers without torch.

What a config leaves out has a default in transformers; a side that depends on it is not compared.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from training.planning.model_families import ModelFamily
from training.planning.model_json import is_tied, read_object, text_part, vision_part
from training.planning.weight_files import INDEX, PICKLES, SINGLE, StoredTensor, stored_tensors

FLOATS = ("F64", "F32", "F16", "BF16")
SHORT, LONG = "model.", "model.language_model."
PREFIXES = {"qwen2_5_vl": (SHORT, LONG), "qwen3_vl": (LONG,), "qwen3_5": (LONG,)}
"""What stands before the names of the text model, where it is not the first one alone."""
HEAD_NORMS = ("qwen3", "qwen3_vl", "qwen3_vl_moe")
BIASED = ("qwen2", "qwen2_5_vl")
"""Types whose queries, keys and values have a bias, whatever the config says."""
SHARED_WIDTH = ("qwen2", "llama", "mistral")
"""Types whose heads share the width where the config does not say how wide one is; others have a default."""
PROJECTIONS = ("q_proj", "k_proj", "v_proj", "o_proj")
PIECES, PIECE_BYTES = 64, 4096
"""How much of two large tensors is compared."""
ADAPTER = "adapter_config.json"
Sides = tuple[int | None, ...]


def weight_problem(folder: Path, family: ModelFamily) -> str | None:
    """Why the folder's weights cannot be read, in words; None = nothing. Raises ValueError and OSError."""
    if (folder / ADAPTER).exists():
        return (
            f"{folder / ADAPTER}: transformers would put an adapter on these weights. Merge it into them, "
            "or take its files away"
        )
    config, tensors = read_object(folder / "config.json"), stored_tensors(folder)
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
    problems = _problems(folder, family, config, tensors)
    return next(problems, None)


def targets_without_layer(folder: Path, targets: Iterable[str]) -> list[str]:
    """Names of `lora.targets` that no layer of the text blocks has. Raises ValueError and OSError."""
    names = list(stored_tensors(folder))
    # One tensor holds the matrices of all experts, however they are stored: it takes no adapter.
    layers = [
        name for name in names if name.endswith(".weight") and ".layers." in name and ".experts." not in name
    ]
    found = {name.split(".")[-2] for name in layers}
    return [one for one in targets if one not in found] if names else []


def _problems(
    folder: Path, family: ModelFamily, config: dict[str, Any], tensors: dict[str, StoredTensor]
) -> Iterator[str]:
    text, where = text_part(config), folder / "config.json"
    prefixes = PREFIXES.get(family.name, (SHORT,))
    prefix = next((one for one in prefixes if f"{one}embed_tokens.weight" in tensors), None)
    if prefix is None:
        names = " or ".join(f"{one}embed_tokens.weight" for one in prefixes)
        yield f"{folder} has no weight {names}, which {family.label} begins with; is it a whole checkpoint?"
        return
    expected = expected_weights(config, prefix)
    for name, sides in expected.items():
        if name not in tensors:
            because = ", and tie_word_embeddings is not true" if name == "lm_head.weight" else ""
            yield f"{where} wants a weight {name}{because}; {folder} has none"
        elif not _fits(tensors[name].shape, sides):
            wanted = tuple("any" if side is None else side for side in sides)
            yield f"{tensors[name].file}: {name} is {tensors[name].shape}, and {where} wants {wanted}"
    head = tensors.get("lm_head.weight")
    if is_tied(config) and head is not None and not _are_equal(head, tensors[f"{prefix}embed_tokens.weight"]):
        yield (
            f"{where} has tie_word_embeddings true, but lm_head.weight in {head.file.name} is another than "
            "embed_tokens.weight: set it to false"
        )
    yield from _surplus(where, prefix, text, set(tensors), set(expected))


def _surplus(
    where: Path, prefix: str, text: dict[str, Any], names: set[str], expected: set[str]
) -> Iterator[str]:
    """Weights of blocks that the config does not have."""
    blocks = f"{prefix}layers."
    for name in sorted(names):
        number, _, rest = name.removeprefix(blocks).partition(".")
        if not name.startswith(blocks) or not number.isdecimal() or rest.endswith("rotary_emb.inv_freq"):
            continue
        if int(number) >= (_count(text, "num_hidden_layers") or int(number) + 1):
            yield f"{where} has num_hidden_layers {text['num_hidden_layers']}, and the weights have {name}"
        is_dense = f"{blocks}{number}.mlp.up_proj.weight" in expected
        if is_dense and rest.startswith(("self_attn.", "mlp.")) and name not in expected:
            yield f"{where} has no place for the weight {name}: is its model_type right?"


def expected_weights(config: dict[str, Any], prefix: str) -> dict[str, Sides]:
    """Of text model, head and tower, as far as they follow from few keys. {name: sides}"""
    model_type, text = str(config["model_type"]), text_part(config)
    width = _count(text, "hidden_size")
    found: dict[str, Sides] = {
        "embed_tokens.weight": (_count(text, "vocab_size"), width),
        "norm.weight": (width,),
    }
    block: dict[str, Sides] = {
        "input_layernorm.weight": (width,),
        "post_attention_layernorm.weight": (width,),
    }
    if not model_type.startswith("qwen3_5"):  # whose blocks differ from one to the next
        block |= _attention(model_type, text, width)
        if "moe" not in model_type:
            block |= _mlp(text, width)
    for number in range(_count(text, "num_hidden_layers") or 0):
        found |= {f"layers.{number}.{name}": sides for name, sides in block.items()}
    found = {f"{prefix}{name}": sides for name, sides in found.items()}
    if not is_tied(config):
        found["lm_head.weight"] = (_count(text, "vocab_size"), width)
    return found | _tower(vision_part(config), "visual." if prefix == SHORT else "model.visual.")


def _tower(vision: dict[str, Any], prefix: str) -> dict[str, Sides]:
    """Of the first layer and of each block one weight."""
    if not vision:
        return {}
    width, patch = _count(vision, "hidden_size"), _count(vision, "patch_size")
    first: Sides = (width, None, _count(vision, "temporal_patch_size"), patch, patch)
    blocks = range(_count(vision, "depth") or 0)
    return {
        f"{prefix}patch_embed.proj.weight": first,
        **{f"{prefix}blocks.{number}.norm1.weight": (width,) for number in blocks},
    }


def _attention(model_type: str, text: dict[str, Any], width: int | None) -> dict[str, Sides]:
    heads, head_width = _count(text, "num_attention_heads"), _count(text, "head_dim")
    is_share = model_type == "qwen2_5_vl" or (model_type in SHARED_WIDTH and head_width is None)
    if is_share and width and heads:
        head_width = width // heads
    queries, keys = (
        number * head_width if number and head_width else None
        for number in (heads, _count(text, "num_key_value_heads"))
    )
    sides = {
        "q_proj": (queries, width),
        "k_proj": (keys, width),
        "v_proj": (keys, width),
        "o_proj": (width, queries),
    }
    found: dict[str, Sides] = {f"self_attn.{name}.weight": sides[name] for name in PROJECTIONS}
    if model_type in BIASED or text.get("attention_bias"):
        biased = PROJECTIONS[:3] if model_type in BIASED else PROJECTIONS
        found |= {f"self_attn.{name}.bias": sides[name][:1] for name in biased}
    if model_type in HEAD_NORMS:
        found |= {f"self_attn.{name}_norm.weight": (head_width,) for name in ("q", "k")}
    return found


def _mlp(text: dict[str, Any], width: int | None) -> dict[str, Sides]:
    inner = _count(text, "intermediate_size")
    sides = {"gate_proj": (inner, width), "up_proj": (inner, width), "down_proj": (width, inner)}
    found: dict[str, Sides] = {f"mlp.{name}.weight": side for name, side in sides.items()}
    if text.get("mlp_bias"):
        found |= {f"mlp.{name}.bias": side[:1] for name, side in sides.items()}
    return found


def _count(text: dict[str, Any], key: str) -> int | None:
    value = text.get(key)
    return value if type(value) is int else None


def _fits(shape: tuple[int, ...], sides: Sides) -> bool:
    return len(shape) == len(sides) and all(
        want in (None, have) for have, want in zip(shape, sides, strict=True)
    )


def _are_equal(one: StoredTensor, other: StoredTensor) -> bool:
    """Whether pieces of both, spread evenly, are the same; the trainer compares all when it reads them."""
    length = one.stop - one.start
    if length != other.stop - other.start or one.dtype != other.dtype:
        return False
    step = max(length // PIECES, PIECE_BYTES)
    with one.file.open("rb") as first, other.file.open("rb") as second:
        for place in range(0, length, step):
            first.seek(one.start + place)
            second.seek(other.start + place)
            count = min(PIECE_BYTES, length - place)
            if first.read(count) != second.read(count):
                return False
    return True
