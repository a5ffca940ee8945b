"""The tiny checkpoint is a real Qwen3-VL folder."""

from __future__ import annotations

import pytest
import torch
from transformers import AutoConfig, AutoTokenizer, Qwen3VLForConditionalGeneration

from testing.training.tiny_model import tiny_folder
from training.content.recipes.tiny.make_checkpoint import TinySizes, make_tiny
from training.content.task_sets.first_desk import COLOURS, NOUNS


def test_it_is_the_real_architecture_and_small_enough_to_ship():
    assert AutoConfig.from_pretrained(tiny_folder()).model_type == "qwen3_vl"
    assert sum(file.stat().st_size for file in tiny_folder().iterdir()) <= 4_000_000


def test_every_weight_is_loaded_from_the_folder():
    _, info = Qwen3VLForConditionalGeneration.from_pretrained(tiny_folder(), output_loading_info=True)
    assert not info["missing_keys"]
    assert not info["unexpected_keys"]


def test_the_seed_decides_the_weights_and_nothing_else(tmp_path):
    state = torch.random.get_rng_state()
    folders = [make_tiny(tmp_path / name, seed=seed) for name, seed in (("a", 1), ("b", 1), ("c", 2))]
    assert torch.equal(torch.random.get_rng_state(), state)
    one, same, other = [(folder / "model.safetensors").read_bytes() for folder in folders]
    assert one == same
    assert one != other
    assert (folders[0] / "tokenizer.json").read_bytes() == (folders[2] / "tokenizer.json").read_bytes()


def test_attention_heads_may_be_wider_than_their_share(tmp_path):
    folder = make_tiny(tmp_path / "wide", sizes=TinySizes(text_head_width=64))
    model, info = Qwen3VLForConditionalGeneration.from_pretrained(folder, output_loading_info=True)
    assert not info["missing_keys"]
    assert not info["mismatched_keys"]
    text = model.config.text_config
    assert (text.head_dim, text.num_attention_heads, text.hidden_size) == (64, 4, 128)
    assert sum(text.rope_parameters["mrope_section"]) == 32


@pytest.fixture(scope="module")
def tokenizer():
    return AutoTokenizer.from_pretrained(tiny_folder())


def test_digits_are_split_one_by_one(tokenizer):
    pieces = [tokenizer.decode([i]) for i in tokenizer("[350,720]")["input_ids"]]
    assert [piece for piece in pieces if piece.isdigit()] == list("350720")


@pytest.mark.parametrize("word", [*COLOURS, *NOUNS])
def test_every_word_of_the_tasks_is_one_token(tokenizer, word):
    assert len(tokenizer(f" {word}")["input_ids"]) == 1


def test_any_text_survives_the_round_trip(tokenizer):
    text = 'Größe → "x\ty" 漢字 🙂'
    assert tokenizer.decode(tokenizer(text)["input_ids"]) == text
