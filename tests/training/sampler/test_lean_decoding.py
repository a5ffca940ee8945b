"""The lean decoding of a CPU gives transformers' own numbers, also of weights that came meanwhile."""

from __future__ import annotations

import pytest
import torch

from testing.training.tiny_model import renderer, tiny_folder
from tests.training.sampler.test_engine import Conversation, converse
from training.sampler.engines import lean_decoding
from training.sampler.engines.lean_decoding import lean_weights
from training.sampler.engines.transformers_engine import TransformersEngine


def engines() -> tuple[TransformersEngine, TransformersEngine]:
    """One that decodes lean and one by transformers' forward, with the same random numbers."""
    lean, plain = (TransformersEngine(tiny_folder(), renderer(), seed=3) for _ in range(2))
    assert lean.lean is not None
    plain.lean = None
    return lean, plain


def talks_of(engine: TransformersEngine, turns: range, temperature: float = 1.0) -> list[Conversation]:
    """Two sequences of different lengths in one batch; more tokens than keys and values have room for."""
    talks = [Conversation("a", "Choose row 2."), Conversation("b", "Type the word that the window shows.")]
    converse(
        engine, renderer(), talks, turns=turns, temperature=temperature, max_tokens=2 * lean_decoding.ROOM + 3
    )
    return talks


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_tokens_and_logprobs_are_those_of_transformers(temperature: float) -> None:
    lean, plain = engines()
    for mine, theirs in zip(
        talks_of(lean, range(3), temperature), talks_of(plain, range(3), temperature), strict=True
    ):
        assert mine.sequence.token_ids == theirs.sequence.token_ids
        assert mine.generated == pytest.approx(theirs.generated, abs=1e-5)


def test_weights_that_are_written_into_the_model_are_decoded_with() -> None:
    lean, plain = engines()
    talks_of(lean, range(1))
    with torch.no_grad():
        for engine in (lean, plain):
            generator = torch.Generator().manual_seed(7)
            for parameter in engine.model.parameters():
                parameter.add_(0.02 * torch.randn(parameter.shape, generator=generator))
            engine.generator.manual_seed(5)
            engine.policy_version = 1
    for mine, theirs in zip(talks_of(lean, range(1)), talks_of(plain, range(1)), strict=True):
        assert mine.generated == pytest.approx(theirs.generated, abs=1e-5)
        assert mine.generated == pytest.approx(mine.scored(lean, renderer()), abs=1e-5)


def test_several_queries_share_a_key() -> None:
    lean, plain = engines()
    for engine in (lean, plain):
        text = engine.model.model.language_model
        with torch.no_grad():
            for layer in text.layers:
                attention = layer.self_attn
                attention.num_key_value_groups = 2
                for projection in (attention.k_proj, attention.v_proj):
                    projection.weight = torch.nn.Parameter(
                        projection.weight[: projection.out_features // 2].clone()
                    )
                    projection.out_features //= 2
        text.config.num_key_value_heads //= 2
    lean.lean = lean_weights(lean.model)
    for mine, theirs in zip(talks_of(lean, range(2)), talks_of(plain, range(2)), strict=True):
        assert mine.generated == pytest.approx(theirs.generated, abs=1e-5)


def test_other_models_are_decoded_by_transformers() -> None:
    model = TransformersEngine(tiny_folder(), renderer(), dtype="bfloat16").model
    assert lean_weights(model) is None
