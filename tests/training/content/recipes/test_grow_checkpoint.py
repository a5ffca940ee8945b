"""A grown start does what the start does, and every part of it learns."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import Qwen3VLForConditionalGeneration

from testing.paths import REPOSITORY
from testing.training.tiny_model import screenshot
from training.content.recipes.first_desk.grow_checkpoint import grow
from training.contracts.config import ModelConfig, PromptConfig
from training.render.renderer import Renderer
from training.sampler.engine import EngineSequence, SamplingSettings
from training.sampler.engines.transformers_engine import TransformersEngine

SHIPPED = REPOSITORY / "training" / "checkpoints_shipped" / "first-desk"
SIZE = (384, 256)


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("grown") / "start"
    grow(SHIPPED, folder, width=2, layers=3)
    return folder


def answers(folder: Path) -> list[tuple[str, list[float]]]:
    """What the policy of a folder says to two screens, and how likely each token was."""
    renderer = Renderer.from_folder(folder, ModelConfig(), PromptConfig())
    sequences = [
        EngineSequence(
            sequence_id=text,
            token_ids=renderer.render_turn(0, text, SIZE, instruction=text),
            pixels=[renderer.pixels(screenshot(seed, SIZE))],
            grids=[renderer.image_grid(SIZE)],
        )
        for seed, text in enumerate(("Click the red button.", 'Type "green owl" and save.'))
    ]
    engine = TransformersEngine(folder, renderer)
    settings = SamplingSettings(temperature=0.0, max_tokens=24)
    found = engine.generate(sequences, [settings] * len(sequences))
    return [(renderer.decode(one.token_ids), list(one.logprobs)) for one in found]


def test_it_answers_as_the_start_does(grown):
    for (text, logprobs), (expected, exact) in zip(answers(grown), answers(SHIPPED), strict=True):
        assert text == expected
        assert logprobs == pytest.approx(exact, abs=1e-4)


def test_every_weight_gets_a_gradient_and_copies_get_their_own(grown):
    model, info = Qwen3VLForConditionalGeneration.from_pretrained(grown, output_loading_info=True)
    assert not info["missing_keys"]
    assert not info["unexpected_keys"]
    renderer = Renderer.from_folder(grown, ModelConfig(), PromptConfig())
    tokens = torch.tensor([renderer.render_turn(0, "x", SIZE, instruction="Click the red button.")])
    grid = torch.tensor([renderer.image_grid(SIZE)])
    pixels = torch.as_tensor(renderer.pixels(screenshot(0, SIZE)))
    model(
        input_ids=tokens,
        mm_token_type_ids=(tokens == renderer.image_pad_id).int(),
        pixel_values=pixels,
        image_grid_thw=grid,
        labels=tokens,
    ).loss.backward()
    silent = {"k_proj", "q_proj", "v_proj", "gate_proj", "up_proj", "k_norm", "q_norm"}
    for name, parameter in model.named_parameters():
        # A block that writes zeros learns to write first.
        if ".layers.1." in name and (set(name.split(".")) & silent or "layernorm" in name):
            continue
        assert parameter.grad is not None, name
        assert parameter.grad.abs().max() > 0, name
    first, second = model.model.language_model.layers[0].mlp.up_proj.weight.grad.chunk(2)
    assert (first - second).norm() > 0.05 * first.norm()


def test_it_cannot_become_shallower(tmp_path):
    with pytest.raises(ValueError, match="has 2 text blocks already"):
        grow(SHIPPED, tmp_path / "x", width=1, layers=1)
