"""The shipped checkpoint and the presets that start from it."""

from __future__ import annotations

import pytest

from testing.paths import REPOSITORY
from training.contracts.config import ModelConfig, PromptConfig
from training.planning.presets import load_presets
from training.render.renderer import Renderer
from training.sampler.engine import EngineSequence, SamplingSettings
from training.sampler.engines.transformers_engine import TransformersEngine

SHIPPED = REPOSITORY / "training" / "checkpoints_shipped" / "first-desk"


def test_the_shipped_checkpoint_is_small_enough_for_a_repository():
    assert sum(file.stat().st_size for file in SHIPPED.iterdir() if file.suffix != ".log") <= 4_000_000


def test_the_shipped_checkpoint_has_learned_to_copy_what_it_must_type():
    reader = Renderer.from_folder(SHIPPED, ModelConfig(), PromptConfig())
    engine = TransformersEngine(SHIPPED, reader)
    text = 'Type "green owl" and save.'
    sequence = EngineSequence(sequence_id="x", token_ids=reader.render_turn(0, text, None, instruction=text))
    (sampled,) = engine.generate([sequence], [SamplingSettings(temperature=0.0, max_tokens=40)])
    assert reader.decode(sampled.token_ids) == '{"action":"type","text":"green owl"}'


PUBLISHED = (
    *("Qwen3-VL-", "Qwen3-4B", "Qwen3.5-", "SmolLM2-"),
    *("EvoCUA-", "UI-TARS-1.5-", "OpenCUA-", "GUI-Owl-", "Holo2-"),
)


@pytest.mark.parametrize("preset", load_presets(), ids=lambda preset: preset.name)
def test_every_preset_names_a_model_that_ships_is_made_or_is_public(preset):
    path = preset.config.model.path
    assert path in ("first-desk", "tiny-random") or path.startswith(PUBLISHED)


@pytest.mark.parametrize("preset", load_presets(), ids=lambda preset: preset.name)
def test_every_preset_is_documented(preset):
    page = (REPOSITORY / "docs" / "presets.md").read_text()
    assert f"`{preset.name}`" in page
