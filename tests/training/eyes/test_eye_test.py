"""Known faults of engines, each planted in the engine alone: the eye test fails with it, and only then."""

import asyncio
import functools
import time

import numpy as np
import pytest
from PIL import Image

from testing.training.tiny_model import renderer, tiny_folder
from training.contracts.config import ExperimentConfig, ModelConfig, SamplingConfig
from training.contracts.config.experiment import EvaluationConfig
from training.contracts.eye_test import (
    NUM_TRIED,
    EngineFacts,
    EyeTest,
    EyeTestRequest,
    Gap,
    stamp_differences,
)
from training.loop.eye_test import EyesDiffer, judged, settle
from training.loop.reference_reader import reference_reader
from training.sampler.engines import transformers_engine
from training.sampler.engines.request_batching import BatchingEngine
from training.sampler.engines.transformers_engine import TransformersEngine
from training.sampler.eye_test import look
from training.untrusted.pictures import open_picture

CONFIG = ExperimentConfig(model=ModelConfig(path=str(tiny_folder()), dtype="float32"))


@functools.cache
def reader():
    return renderer()


@functools.cache
def gap():
    found, is_whole = reference_reader(CONFIG)
    assert not is_whole
    return found


def measure(engine, pixels=None, config=CONFIG, *, is_whole=False):
    batched = BatchingEngine(engine, pixels or reader().pixels)
    answer = asyncio.run(look(batched, reader(), SamplingConfig(), EyeTestRequest(is_whole=is_whole)))
    return judged(answer, gap(), config, 0, time.monotonic())


@pytest.fixture
def engine():
    return TransformersEngine(tiny_folder(), reader(), seed=3)


def temporal_row_alone(engine, monkeypatch):
    """sglang#35772: the kernel reads one of three rows of positions."""
    right = transformers_engine.rope_positions
    monkeypatch.setattr(
        transformers_engine, "rope_positions", lambda *given: np.repeat(right(*given)[:1], 3, axis=0)
    )


def corners_aligned_otherwise(engine, monkeypatch):
    """sglang#34013: the learned positions are interpolated as by another flag."""
    tower = engine.model.model.visual
    tower.interpolation_align_corners = not tower.interpolation_align_corners


def sides_swapped(png):
    """A resize to (height, width): as many patches, of another picture."""
    with open_picture(png) as image:
        width, height = reader().resized_size(image.size)
        return reader().patches(np.asarray(image.convert("RGB").resize((height, width), Image.BICUBIC)))


SIZES = ["1312x736", "800x600", "1000x1400", "1920x1080"]


def test_a_sound_engine_reads_as_the_trainer_does(engine):
    found = measure(engine)
    assert [gap.name for gap in found.gaps] == SIZES
    assert max(gap.nats for gap in found.gaps) < found.limit / 10
    assert not found.problem
    assert found.facts.kernels == "sdpa on cpu, lean decoding"
    assert "image:" in found.facts.fingerprint


@pytest.mark.parametrize("fault", [temporal_row_alone, corners_aligned_otherwise])
def test_a_fault_of_the_engine_is_named_by_picture_size(engine, monkeypatch, fault):
    fault(engine, monkeypatch)
    found = measure(engine)
    assert [gap.name for gap in found.failed] == SIZES
    assert "nats at 1312x736" in found.problem


def test_a_swapped_resize_is_named_by_picture_size(engine):
    assert [gap.name for gap in measure(engine, sides_swapped).failed] == SIZES


def test_the_setting_decides_whether_the_run_goes_on(engine):
    settle("it differs", CONFIG)
    stopping = CONFIG.model_copy(update={"evaluation": EvaluationConfig(eye_test="stop")})
    with pytest.raises(EyesDiffer, match=r"evaluation\.eye_test: it differs"):
        settle("it differs", stopping)


def test_random_weights_are_asked_for_eight_clicks_and_no_more(engine, monkeypatch):
    asked = []
    right = engine.generate
    monkeypatch.setattr(engine, "generate", lambda *given: asked.extend(given[0]) or right(*given))
    assert measure(engine, is_whole=True).num_targets == 0
    assert len(asked) == NUM_TRIED


def test_two_numbers_of_different_engines_say_what_differs():
    facts = EngineFacts(
        engine="sglang",
        version="0.5.16",
        kernels="fa3",
        precision="bfloat16",
        fingerprint="tokenizer:a image:1-2",
        max_completion_tokens=40,
        max_context_tokens=900,
    )
    first = EyeTest(facts=facts, gaps=(Gap(name="800x600", nats=0.01),), limit=0.05, policy_version=1)
    other = facts.model_copy(update={"version": "0.5.17", "fingerprint": "tokenizer:a image:1-3"})
    second = EyeTest(facts=other, gaps=(Gap(name="800x600", nats=2.0),), limit=0.05, policy_version=1)
    assert stamp_differences(first, first) == []
    assert stamp_differences(None, None) == []
    assert stamp_differences(first, None) == ["one has no eye test"]
    assert stamp_differences(first, second) == [
        "engine version 0.5.16 and 0.5.17",
        "other image limits",
        "the second failed its eye test",
    ]
