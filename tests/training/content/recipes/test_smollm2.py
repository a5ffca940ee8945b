"""Published weights out of a package: names, order of rows, and a model that answers."""

import subprocess
import sys

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from testing.paths import REPOSITORY
from training.content.recipes.smollm2.make_checkpoint import halves, model_name


def test_tensors_have_the_names_of_transformers() -> None:
    assert model_name("token_embd.weight") == "model.embed_tokens.weight"
    assert model_name("output_norm.weight") == "model.norm.weight"
    assert model_name("blk.12.attn_q.weight") == "model.layers.12.self_attn.q_proj.weight"
    assert model_name("blk.0.ffn_norm.weight") == "model.layers.0.post_attention_layernorm.weight"


def test_rotated_pairs_side_by_side_become_two_halves() -> None:
    rows = torch.arange(8.0)[:, None]
    assert halves(rows, heads=2).flatten().tolist() == [0, 2, 1, 3, 4, 6, 5, 7]


@pytest.mark.slow
def test_the_checkpoint_of_the_package_answers_a_question(tmp_path) -> None:
    folder = tmp_path / "model"
    for _ in range(2):  # the second time nothing is left to do
        subprocess.run(
            [sys.executable, str(REPOSITORY / "scripts" / "fetch_smollm2.py"), str(folder)], check=True
        )
    assert "quantised to 4 bits" in (folder / "README.md").read_text()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    messages = [{"role": "user", "content": "What is the capital of France?"}]
    prompt = tokenizer.apply_chat_template(
        messages, add_generation_prompt=True, return_tensors="pt", return_dict=True
    )
    said = model.generate(**prompt, max_new_tokens=12, do_sample=False)[0][len(prompt["input_ids"][0]) :]
    assert tokenizer.decode(said) == "The capital of France is Paris.<|im_end|>"
