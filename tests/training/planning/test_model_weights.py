"""A folder that is broken, or whose config.json is another model's, is named before anything is queued."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from testing.model_folders import write_model_folder
from testing.training.changed_folders import (
    WEIGHTS,
    Break,
    config,
    cut,
    described,
    part,
    sharded,
    split,
    text,
    tower,
    turned,
    weights,
)
from testing.training.tiny_families import NAMES, make_family
from training.model.load_by_block import FolderReader
from training.planning.image_settings import image_problem
from training.planning.model_families import UnsupportedModel, family_of_folder
from training.planning.model_json import read_object
from training.planning.model_shape import shape_of
from training.planning.model_tokens import missing_tokens
from training.planning.model_weights import weight_problem
from training.planning.weight_files import stored_tensors

TURNS = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}"
    "{{ 'USER_END' if m.role == 'user' else '<|im_end|>' }}\n{% endfor %}<|im_start|>assistant\n"
)
EMBEDDING, HEAD = "model.embed_tokens.weight", "lm_head.weight"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A folder of a family that is as it should be; not to be changed."""
    base = tmp_path_factory.mktemp("whole")

    def made(name: str) -> Path:
        return base / name if (base / name).is_dir() else make_family(base / name, name)

    return made


@pytest.fixture
def copied(whole: Callable[[str], Path], tmp_path: Path) -> Callable[[str], Path]:
    def made(name: str) -> Path:
        return Path(shutil.copytree(whole(name), tmp_path / name))

    return made


def problem_of(folder: Path) -> str:
    """What pre-flight would say; "" where it is good."""
    try:
        family = family_of_folder(folder)
        found = weight_problem(folder, family, stored_tensors(folder)) or missing_tokens(folder, family)
        return found or (image_problem(folder) if family.has_vision else None) or ""
    except (ValueError, OSError) as error:
        return str(error)


@pytest.mark.parametrize("name", [*NAMES])
def test_a_folder_as_published_is_good(name: str, copied: Callable[[str], Path]) -> None:
    folder = copied(name)
    assert problem_of(folder) == ""
    sharded(folder)
    assert problem_of(folder) == ""


def overlap(file: Path) -> None:
    """The second weight's bytes begin within the first's."""
    header = header_of(file)
    by_place = sorted((entry["data_offsets"] for name, entry in header.items() if name != "__metadata__"))
    second = next(entry for entry in header.values() if entry.get("data_offsets") == by_place[1])
    second["data_offsets"] = [by_place[1][0] - 4, by_place[1][1]]
    put_header(file, header)


def other_type(folder: Path) -> None:
    """The header calls a weight of four bytes a number one of two."""
    header = header_of(folder / WEIGHTS)
    next(entry for entry in header.values() if entry.get("dtype") == "F32")["dtype"] = "BF16"
    put_header(folder / WEIGHTS, header)


def header_of(file: Path) -> dict[str, Any]:
    written = file.read_bytes()
    header: dict[str, Any] = json.loads(written[8 : 8 + int.from_bytes(written[:8], "little")])
    return header


def put_header(file: Path, header: dict[str, Any]) -> None:
    """A header that takes at most the bytes of the old one."""
    written = file.read_bytes()
    length = int.from_bytes(written[:8], "little")
    changed = json.dumps(header, separators=(",", ":")).encode().ljust(length)
    assert len(changed) == length
    file.write_bytes(written[:8] + changed + written[8 + length :])


BROKEN: dict[str, tuple[str, Break, str]] = {
    "no weights": ("qwen3", lambda folder: (folder / WEIGHTS).unlink(), r"no model\.safetensors"),
    "a shard": (
        "qwen3",
        lambda folder: sharded(folder, without="model-00002-of-00002.safetensors"),
        r"lacks model-00002-of-00002\.safetensors, which model\.safetensors\.index\.json names",
    ),
    "shards alone": ("qwen3", lambda folder: sharded(folder, has_index=False), "no model.safetensors.index"),
    "five bytes": ("qwen3", cut(5), r"model\.safetensors is not a safetensors file, or was cut"),
    "half a header": ("qwen3", cut(200), r"model\.safetensors is not a safetensors file, or was cut"),
    "half the weights": ("qwen3", cut(-1000), r"has \d+ bytes, and its header wants \d+"),
    "overlapping weights": ("qwen3", lambda folder: overlap(folder / WEIGHTS), "overlap or leave a gap"),
    "another type": ("qwen3", other_type, r"has \d+ bytes of .*, and BF16 of \(.*\) is \d+: download it"),
    "a pointer of Git": (
        "qwen3",
        text(WEIGHTS, "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 4967215360\n"),
        "git lfs pull",
    ),
    "a page": ("qwen3", text(WEIGHTS, "<!DOCTYPE html><html>503</html>"), "not a safetensors file"),
    "half a config": ("qwen3", text("config.json", '{"model_type": '), r"config\.json is not JSON"),
    "a list as config": ("qwen3", text("config.json", "[]"), r"config\.json holds no JSON object"),
    "half an index": (
        "qwen3",
        lambda folder: (sharded(folder), text(f"{WEIGHTS}.index.json", "{")(folder)),
        r"index\.json is not JSON",
    ),
    "norms without a place": ("qwen3", config(model_type="llama"), r"no place for the weight .*k_norm"),
    "missing norms": ("llama", config(model_type="qwen3"), r"config\.json wants a weight .*_norm"),
    "a block too many": ("llama", config(num_hidden_layers=1), r"num_hidden_layers 1, .* model\.layers\.1"),
    "a block too few": ("llama", config(num_hidden_layers=3), r"wants a weight model\.layers\.2"),
    "other key heads": ("llama", config(num_key_value_heads=4), r"k_proj\.weight is \(32, 64\).*\(64, 64\)"),
    "another width": ("llama", config(intermediate_size=96), r"gate_proj\.weight is \(128, 64\).*\(96, 64\)"),
    "no head": ("llama", config(tie_word_embeddings=None), r"lm_head\.weight, and tie_word_embed"),
    "no beginning": (
        "llama",
        weights(lambda held: held.update({EMBEDDING[6:]: held.pop(EMBEDDING)})),
        r"no weight model\.embed_tokens\.weight",
    ),
    "two heads": (
        "llama",
        weights(lambda held: held.update({HEAD: held[EMBEDDING] + 1})),
        r"tie_word_embeddings true, but lm_head\.weight",
    ),
    "eight bits": (
        "qwen3",
        weights(lambda held: held.update({HEAD: held[HEAD].to(torch.float8_e4m3fn)})),
        r"lm_head\.weight is F8_E4M3, and quantised",
    ),
    "an adapter": ("qwen3", text("adapter_config.json", "{}"), r"adapter_config\.json: .*Merge it"),
    "blocks the other way round": (
        "qwen3_5",
        part(layer_types=["full_attention", "linear_attention"]),
        r"wants a weight .*layers\.0\.self_attn\.q_proj",
    ),
    "every fourth by default": (
        "qwen3_5_text",
        config(layer_types=None, full_attention_interval=None),
        r"wants a weight .*layers\.1\.linear_attn\.A_log",
    ),
    "states of other heads": (
        "qwen3_5_text", config(linear_num_value_heads=8), r"layers\.0\.linear_attn\.A_log is \(4,\), .*\(8,\)"
    ),
    "other experts": ("qwen3_5_moe", part(num_experts=6), r"mlp\.gate\.weight is \(4, 64\), .* \(6, 64\)"),
    "wider experts": (
        "qwen3_5_moe",
        part(moe_intermediate_size=40),
        r"experts\.gate_up_proj is \(4, 64, 64\), .* \(4, 80, 64\)",
    ),
    "no expert for all": (
        "qwen3_5_moe",
        weights(lambda held: [held.pop(name) for name in list(held) if ".1.mlp.shared" in name]),
        r"wants a weight .*layers\.1\.mlp\.shared_expert_gate",
    ),
    "experts the other way round": (
        "qwen3_5_moe",
        weights(lambda held: held.update(turned(held))),
        r"experts\.down_proj is \(4, 32, 64\), .*\(4, 64, 32\)",
    ),
    "experts one by one, and one too few": (
        "qwen3_5_moe",
        weights(lambda held: split(held, count=3)),
        r"wants a weight .*layers\.0\.mlp\.experts\.3\.gate_proj",
    ),
    "a tower of fewer blocks": ("qwen3_vl", tower(depth=1), r"no place for the weight .*blocks\.1\.attn"),
    "a level without an index": (
        "qwen3_vl", tower(deepstack_visual_indexes=[]), r"few deepstack_visual_indexes .*merger_list\.0\."
    ),
    "levels by default": (
        "qwen3_vl",
        lambda folder: config(vision_config={
            key: value for key, value in read_object(folder / "config.json")["vision_config"].items()
            if key != "deepstack_visual_indexes"
        })(folder),
        r"wants a weight .*merger_list\.1\.",
    ),
    "half a tokenizer": ("qwen3", text("tokenizer.json", "{"), r"tokenizer\.json is not JSON"),
    "other JSON": ("qwen3", text("tokenizer.json", "{}"), r"tokenizer\.json is no tokenizer's file"),
    "no tokenizer": ("qwen3", lambda folder: (folder / "tokenizer.json").unlink(), r"no tokenizer\.json"),
    "settings of it": ("qwen3", text("tokenizer_config.json", "{"), r"tokenizer_config\.json is not JSON"),
    "ids beyond the rows": (
        "qwen3", described("tokenizer.json", added_tokens=[
            {"id": number, "content": words} for number, words in ((447, "<|im_start|>"), (448, "<|im_end|>"))
        ]), "a token of id 448, and vocab_size",
    ),
    "turns of Mistral": (
        "mistral",
        text("chat_template.jinja", TURNS.replace("USER_END", "[/INST]")),
        r"chat_template\.jinja: .* does not end every message with one token",
    ),
    "no turn of the system": (
        "qwen3",
        text("chat_template.jinja", "{{ raise_exception('System role not supported') }}"),
        r"chat_template\.jinja: .* System role not supported; choose a model whose template",
    ),
    "a template of more turns": (
        "qwen3",
        text("chat_template.jinja", "{{ messages[9].content }}"),
        r"chat_template\.jinja: .*cannot be used: .*has no element 9",
    ),
    "a token that templates name": (
        "qwen3",
        text("chat_template.jinja", TURNS.replace("USER_END", "<|im_over|>")),
        r"chat_template\.jinja: the tokenizer has no token <\|im_over\|>",
    ),
    "half its ends": ("qwen3", text("generation_config.json", "{"), r"generation_config\.json is not JSON"),
    "ends by name": ("qwen3", described("generation_config.json", eos_token_id="x"), "eos_token_id is 'x'"),
    "another pad": ("qwen3_vl", config(image_token_id=3), r"image_token_id 3, and <\|image_pad\|> is \d+"),
    "no tower": (
        "qwen3_vl",
        weights(lambda held: [held.pop(name) for name in list(held) if ".visual." in name]),
        r"wants a weight model\.visual\.patch_embed\.proj\.weight",
    ),
    "other patches than the weights": (
        "qwen2_5_vl",
        lambda folder: [
            described("preprocessor_config.json", patch_size=16)(folder), tower(patch_size=16)(folder)
        ],
        r"visual\.patch_embed\.proj\.weight is \(32, 3, 2, 14, 14\), and .* \(32, 3, 2, 16, 16\)",
    ),
    "a tower of more blocks": (
        "qwen3_5",
        tower(depth=3),
        r"wants a weight model\.visual\.blocks\.2\.norm1",
    ),
    "no image settings": (
        "qwen3_vl", lambda folder: (folder / "preprocessor_config.json").unlink(), r"no preprocessor_config"
    ),
    "other patches": (
        "qwen3_vl", described("preprocessor_config.json", patch_size=14), r"patch_size 14, and .* 16"
    ),
    "other merging": (
        "qwen2_5_vl", described("preprocessor_config.json", merge_size=4), r"merge_size 4, and spatial_"
    ),
}  # fmt: skip


def test_experts_may_lie_as_transformers_or_their_publisher_lays_them(
    copied: Callable[[str], Path], tmp_path: Path
) -> None:
    folder = copied("qwen3_5_moe")
    weights(lambda held: split(held, count=4))(folder)
    assert problem_of(folder) == ""
    folder = write_model_folder(
        tmp_path / "vl", "qwen3_vl_moe", num_local_experts=4, moe_intermediate_size=48, num_experts_per_tok=2
    )
    assert problem_of(folder) == ""
    assert shape_of(read_object(folder / "config.json")).experts == 4
    weights(lambda held: held.update(turned(held)))(folder)
    assert problem_of(folder) == ""


@pytest.mark.parametrize("case", BROKEN)
def test_what_is_broken_is_named_with_its_file_and_key(case: str, copied: Callable[[str], Path]) -> None:
    name, change, words = BROKEN[case]
    folder = copied(name)
    change(folder)
    pytest.raises(ValueError, _raise, problem_of(folder)).match(words)


def _raise(words: str) -> None:
    raise ValueError(words)


def test_a_config_of_an_unsupported_kind_is_refused_by_the_trainer_too(copied: Callable[[str], Path]) -> None:
    folder = copied("qwen2")
    config(attention_dropout=0.1)(folder)
    with pytest.raises(UnsupportedModel, match=r"^model\.path: .*qwen2: .*attention_dropout"):
        FolderReader(folder)


def test_weights_are_read_from_the_files_that_transformers_reads(copied: Callable[[str], Path]) -> None:
    """What else lies there, an optimiser or an older shard, is not the model."""
    folder = copied("qwen3")
    expected = load_file(folder / WEIGHTS)
    stray = {name: weight + 1 for name, weight in expected.items()}
    save_file(stray, folder / "optimiser.safetensors", {"format": "pt"})
    for change in (lambda _: None, sharded):
        change(folder)
        read = FolderReader(folder)
        assert all(torch.equal(read(name, weight.shape), weight) for name, weight in expected.items())
        counted = sum(weight.numel() for weight in expected.values())
        assert sum(torch.Size(one.shape).numel() for one in stored_tensors(folder).values()) == counted


def test_a_tied_head_may_lie_beside_its_embedding(copied: Callable[[str], Path]) -> None:
    folder = copied("llama")
    weights(lambda held: held.update({HEAD: held[EMBEDDING].clone()}))(folder)
    assert problem_of(folder) == ""
    FolderReader(folder)
    weights(lambda held: held[HEAD][-1].add_(1))(folder)
    with pytest.raises(ValueError, match=r"lm_head\.weight is another than .* set it to false"):
        FolderReader(folder)


def test_a_quantised_weight_is_refused_by_the_trainer(copied: Callable[[str], Path]) -> None:
    folder = copied("qwen3")
    shape = tuple(load_file(folder / WEIGHTS)[HEAD].shape)
    weights(lambda held: held.update({HEAD: held[HEAD].to(torch.float8_e4m3fn)}))(folder)
    with pytest.raises(ValueError, match=r"lm_head\.weight is torch\.float8_e4m3fn, and quantised"):
        FolderReader(folder)(HEAD, shape)


@pytest.mark.parametrize(
    ("model_type", "top", "inner", "is_tied"),
    [
        ("qwen3_vl", True, False, True),
        ("qwen3_vl", False, True, False),
        ("qwen2_5_vl", False, True, True),
        ("qwen2_5_vl", False, False, False),
    ],
)
def test_whether_the_head_is_tied_is_read_as_transformers_reads_it(
    model_type: str, top: bool, inner: bool, is_tied: bool, copied: Callable[[str], Path]
) -> None:
    from transformers import AutoConfig

    folder = copied(model_type)
    inside = read_object(folder / "config.json")["text_config"]
    config(tie_word_embeddings=top, text_config=inside | {"tie_word_embeddings": inner})(folder)
    assert shape_of(read_object(folder / "config.json")).is_tied is is_tied
    assert AutoConfig.from_pretrained(folder).tie_word_embeddings is is_tied
