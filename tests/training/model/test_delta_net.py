"""Blocks that keep a state: packed sequences do not see each other's, and an engine's rows keep their own."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM

from testing.training.family_probe import family_config
from testing.training.tiny_families import make_family
from training.model.delta_net import are_refused, use_bounded_state
from training.model.packed_attention import Bounds
from training.planning.model_families import family_of_type
from training.render.renderer import Renderer
from training.sampler.engine import EngineSequence, SamplingSettings
from training.sampler.engines.transformers_engine import TransformersEngine

LENGTHS = [5, 70, 1, 2, 9]
"""Shorter than the convolution, longer than a chunk of the rule, and of one token."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_family(tmp_path_factory.mktemp("state") / "model", "qwen3_5_text")


@pytest.fixture(scope="module")
def engine(folder: Path) -> TransformersEngine:
    config = family_config(folder)
    return TransformersEngine(folder, Renderer.from_folder(folder, config.model, config.prompt), seed=2)


@pytest.mark.parametrize("act", ["silu", "gelu"])
def test_packed_sequences_are_what_transformers_makes_of_each_alone(folder: Path, act: str) -> None:
    ours, plain = (AutoModelForCausalLM.from_pretrained(folder, hidden_act=act).model for _ in range(2))
    use_bounded_state(ours)
    row = torch.randn(1, sum(LENGTHS), 64, generator=torch.Generator().manual_seed(1))
    starts = torch.tensor([0, *LENGTHS]).cumsum(0).int()
    net, other = (model.layers[0].linear_attn for model in (ours, plain))
    with torch.no_grad():
        packed = net(row, packed=Bounds(starts, LENGTHS))
        apart = torch.cat([other(piece) for piece in row.split(LENGTHS, dim=1)], dim=1)
        torch.testing.assert_close(packed, apart, atol=1e-6, rtol=1e-5)
        torch.testing.assert_close(net(row), other(row), atol=1e-6, rtol=1e-5)
        assert (net(row) - packed)[0, :5].abs().max() < 1e-6
        assert (net(row) - packed)[0, 5:].abs().max() > 1e-3, "a state that is not reset shows"


@pytest.mark.parametrize(
    ("capability", "triton", "has_tilelang", "expected"),
    [
        ((9, 0), "3.6.0", False, True),
        ((9, 0), "3.6.0", True, False),
        ((9, 0), "3.7.1", False, False),
        ((9, 0), "3.3.1", False, False),
        ((8, 0), "3.6.0", False, False),
        ((10, 0), "3.6.0", False, False),
    ],
)
def test_kernels_with_wrong_gradients_are_not_used(
    capability: tuple[int, int], triton: str, has_tilelang: bool, expected: bool
) -> None:
    assert are_refused(capability, triton, has_tilelang=has_tilelang) is expected


def test_rows_of_unequal_length_go_on_as_each_alone(engine: TransformersEngine) -> None:
    """A row that ends first is fed padding while the others go on; its state is of its own last token."""
    sequences = [
        EngineSequence(sequence_id=str(length), token_ids=list(range(20, 20 + length))) for length in (3, 11)
    ]
    for limits in ((1, 6), (5, 2)):
        done = engine.generate(
            sequences, [SamplingSettings(temperature=1.0, max_tokens=most) for most in limits]
        )
        for sequence, completion in zip(sequences, done, strict=True):
            fresh = EngineSequence(sequence_id="fresh", token_ids=list(sequence.token_ids))
            start = len(sequence.token_ids) - len(completion.token_ids)
            assert completion.logprobs == pytest.approx(engine.score(fresh, start), abs=1e-5)
            sequence.token_ids += [40, 41, 42]


def test_adapters_reach_what_stands_for_queries_and_outputs() -> None:
    family = family_of_type("qwen3_5")
    assert family.adapted(["q_proj", "down_proj"]) == ("q_proj", "down_proj", "in_proj_qkv", "in_proj_z")
    assert family.adapted(["o_proj"]) == ("o_proj", "out_proj")
    assert family_of_type("qwen3").adapted(["q_proj"]) == ("q_proj",)
