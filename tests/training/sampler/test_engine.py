"""The engine draws exactly what the trainer will score."""

from __future__ import annotations

import asyncio

import pytest
import torch
from transformers import AutoModelForImageTextToText

from testing.training.teacher_forcing import teacher_forced_logprobs
from testing.training.tiny_model import SIZE, renderer, screenshot, tiny_folder
from training.content.recipes.tiny.make_checkpoint import make_tiny
from training.render.rendered_sequence import RenderedSequence
from training.sampler.canary import canary_sequence, engine_canary
from training.sampler.engine import EngineSequence, SamplingSettings
from training.sampler.engines.request_batching import BatchingEngine
from training.sampler.engines.transformers_engine import TransformersEngine


@pytest.fixture(scope="module")
def reader():
    return renderer()


@pytest.fixture
def engine(reader):
    return TransformersEngine(tiny_folder(), reader, seed=3)


class Conversation:
    """A sequence in the engine beside the same sequence as the trainer will see it."""

    def __init__(self, name: str, instruction: str) -> None:
        self.sequence = EngineSequence(sequence_id=name)
        self.rendered = RenderedSequence()
        self.instruction = instruction
        self.generated: list[float] = []

    def observe(self, reader, turn: int, seed: int | None) -> None:
        size = None if seed is None else SIZE
        stopped = not self.rendered.token_ids or self.rendered.token_ids[-1] == reader.stop_id
        prompt = reader.render_turn(
            turn, self.instruction, size, instruction=self.instruction, previous_stopped=stopped
        )
        self.sequence.token_ids += prompt
        self.rendered.append_prompt(prompt)
        if seed is not None:
            self.sequence.pixels.append(reader.pixels(screenshot(seed)))
            self.sequence.grids.append(reader.image_grid(SIZE))
            self.rendered.images.append(str(seed))
            self.rendered.grids.append(reader.image_grid(SIZE))

    def take(self, sampled) -> None:
        self.rendered.append_completion(sampled.token_ids, sampled.logprobs, sampled.policy_version)
        self.generated += sampled.logprobs

    def scored(self, engine, reader, temperature: float = 1.0) -> list[float]:
        return teacher_forced_logprobs(
            engine.model,
            self.rendered,
            lambda seed: reader.pixels(screenshot(int(seed))),
            image_pad_id=reader.image_pad_id,
            banned_ids=reader.banned_ids,
            pad_id=reader.pad_id,
            temperature=temperature,
        )


def converse(engine, reader, talks, *, turns, temperature=1.0, max_tokens=9) -> None:
    sampling = SamplingSettings(temperature=temperature, max_tokens=max_tokens)
    for turn in turns:
        for number, talk in enumerate(talks):
            talk.observe(reader, turn, seed=10 * turn + number)
        for talk, sampled in zip(
            talks, engine.generate([t.sequence for t in talks], [sampling] * len(talks)), strict=True
        ):
            talk.take(sampled)


def test_behaviour_logprobs_of_a_batch_equal_a_teacher_forced_pass(engine, reader):
    talks = [
        Conversation(str(n), text) for n, text in enumerate(["Choose row 4.", "Click the red button now."])
    ]
    converse(engine, reader, talks, turns=range(3))
    for talk in talks:
        assert talk.generated == pytest.approx(talk.scored(engine, reader), abs=1e-5)


def test_logprobs_are_taken_at_the_sampling_temperature(engine, reader):
    talk = Conversation("hot", "Choose row 2.")
    converse(engine, reader, [talk], turns=range(2), temperature=0.5)
    assert talk.generated == pytest.approx(talk.scored(engine, reader, temperature=0.5), abs=1e-5)
    assert talk.generated != pytest.approx(talk.scored(engine, reader), abs=1e-2)


@pytest.mark.parametrize("temperature", [0.0, 0.5, 1.0])
def test_alternatives_are_the_likeliest_tokens_at_the_sampling_temperature(engine, reader, temperature):
    prompt = reader.tokenizer.encode("Choose row 4 and save.")
    sequences = [EngineSequence(sequence_id=str(row), token_ids=list(prompt)) for row in range(3)]
    counts = (5, 0, 2)
    found = engine.generate(
        sequences,
        [
            SamplingSettings(temperature=temperature, max_tokens=4 + count, top_logprobs=count)
            for count in counts
        ],
    )
    for sequence, sampled, count in zip(sequences, found, counts, strict=True):
        with torch.no_grad():
            logits = engine.model(input_ids=torch.tensor([sequence.token_ids])).logits[0].float()
        logits[:, reader.banned_ids] = -torch.inf
        logprobs = (logits / (temperature or 1.0)).log_softmax(-1)[len(prompt) - 1 : -1]
        values, ids = logprobs.topk(count)
        assert len(sampled.top) == (len(sampled.token_ids) if count else 0)
        for place, top in enumerate(sampled.top):
            assert [token for token, _ in top] == ids[place].tolist()
            assert [value for _, value in top] == pytest.approx(values[place].tolist(), abs=1e-4)
            sampled_at = dict(top).get(sampled.token_ids[place])
            assert sampled_at in (None, sampled.logprobs[place])


def test_trajectories_at_different_turns_share_a_batch(engine, reader):
    early, late = Conversation("early", "Choose row 1."), Conversation("late", 'Type "red fox" and save.')
    converse(engine, reader, [late], turns=range(2))
    early.observe(reader, 0, seed=90)
    late.observe(reader, 2, seed=91)
    sampling = [
        SamplingSettings(temperature=1.0, max_tokens=4),
        SamplingSettings(temperature=1.0, max_tokens=12),
    ]
    for talk, sampled in zip(
        (early, late), engine.generate([early.sequence, late.sequence], sampling), strict=True
    ):
        talk.take(sampled)
    for talk in (early, late):
        assert talk.generated == pytest.approx(talk.scored(engine, reader), abs=1e-5)


def test_after_new_weights_nothing_computed_by_the_old_ones_is_used(engine, reader, tmp_path):
    talk = Conversation("synced", "Choose row 3.")
    converse(engine, reader, [talk], turns=range(2))
    old_part = len(talk.generated)
    engine.load_weights(make_tiny(tmp_path, seed=8), policy_version=5)
    converse(engine, reader, [talk], turns=[2])
    assert talk.rendered.policy_versions[-1] == 5
    assert talk.generated[old_part:] == pytest.approx(talk.scored(engine, reader)[old_part:], abs=1e-5)


def test_no_picture_of_the_old_tower_outlives_two_syncs(engine, reader, tmp_path):
    """Only the tower changes, there and back; the same prompt, screenshot and sequence with its cache."""
    other = AutoModelForImageTextToText.from_pretrained(tiny_folder())
    with torch.no_grad():
        for weight in other.model.visual.parameters():
            weight.mul_(1.5)
    other.save_pretrained(tmp_path / "other")
    reader.tokenizer.save_pretrained(tmp_path / "other")
    talk = Conversation("seen", "Choose row 3.")
    talk.observe(reader, 0, seed=4)
    generated = []
    prompt, sampling = list(talk.sequence.token_ids), SamplingSettings(temperature=1.0, max_tokens=6)
    for version, folder in enumerate((None, tmp_path / "other", tiny_folder())):
        if folder is not None:
            engine.load_weights(folder, policy_version=version)
        talk.sequence.token_ids = list(prompt)
        (sampled,) = engine.generate([talk.sequence], [sampling])
        fresh = Conversation(f"fresh {version}", "Choose row 3.")
        fresh.observe(reader, 0, seed=4)
        fresh.take(sampled)
        assert sampled.logprobs == pytest.approx(fresh.scored(engine, reader), abs=1e-5), version
        generated.append(sampled.logprobs)
    assert abs(generated[0][0] - generated[1][0]) > 1e-3, "another tower says another thing"


def test_a_context_with_a_cache_draws_the_same_as_one_without(reader):
    generated = []
    for forget in (False, True):
        engine = TransformersEngine(tiny_folder(), reader, seed=11)
        talk = Conversation("same", "Choose row 6.")
        converse(engine, reader, [talk], turns=[0])
        if forget:
            talk.sequence.cache = None
        converse(engine, reader, [talk], turns=[1])
        generated.append(talk.rendered.token_ids)
    assert generated[0] == generated[1]


def test_temperature_zero_takes_the_likeliest_token(engine, reader):
    talks = [Conversation(name, "Choose row 5.") for name in ("one", "two")]
    for talk in talks:
        talk.observe(reader, 0, seed=4)
    first, second = engine.generate(
        [talk.sequence for talk in talks], [SamplingSettings(temperature=0.0, max_tokens=6)] * 2
    )
    assert first.token_ids == second.token_ids


def test_a_completion_ends_at_its_token_limit(engine, reader):
    talk = Conversation("short", "Choose row 5.")
    talk.observe(reader, 0, seed=4)
    (sampled,) = engine.generate([talk.sequence], [SamplingSettings(temperature=1.0, max_tokens=1)])
    assert len(sampled.token_ids) == 1
    assert sampled.finish_reason == ("stop" if sampled.token_ids == [reader.stop_id] else "length")


def test_text_only_sequences_need_no_pixels(engine, reader):
    talk = Conversation("blind", "Choose row 5.")
    talk.observe(reader, 0, seed=None)
    (sampled,) = engine.generate([talk.sequence], [SamplingSettings(temperature=1.0, max_tokens=5)])
    talk.take(sampled)
    assert talk.generated == pytest.approx(talk.scored(engine, reader), abs=1e-5)


def test_the_canary_of_engine_and_trainer_agree(engine, reader):
    answer = asyncio.run(engine_canary(BatchingEngine(engine, reader.pixels), reader))
    rendered = canary_sequence(reader)
    talk = Conversation("canary", "")
    talk.rendered = rendered
    from training.sampler.canary import canary_png

    scored = teacher_forced_logprobs(
        engine.model,
        rendered,
        lambda _: reader.pixels(canary_png()),
        image_pad_id=reader.image_pad_id,
        banned_ids=reader.banned_ids,
        pad_id=reader.pad_id,
    )
    masked = [p for p, m in zip(answer.logprobs, answer.loss_mask, strict=True) if m]
    assert masked == pytest.approx(scored, abs=1e-5)


def test_weights_of_another_architecture_are_refused_and_the_old_ones_stay(engine, tmp_path):
    folder = make_tiny(tmp_path, seed=1)
    (folder / "model.safetensors").unlink()
    with pytest.raises((OSError, ValueError)):
        engine.load_weights(folder, policy_version=9)
    assert engine.policy_version == 0


def test_tokens_come_as_often_as_their_probabilities_say(engine, reader):
    """20 000 draws of one distribution with a banned token; chi-squared far inside its 99.9 % bound."""
    logits = torch.log(torch.tensor([0.5, 0.3, 0.15, 0.05, 0.0]))
    row = torch.full((len(reader.tokenizer),), -torch.inf)
    row[torch.tensor([3, 7, 40, 90, 200])] = logits
    row[reader.banned_ids[0]] = 9.0
    at_one = torch.ones(20_000)
    logprobs = engine._token_logprobs(row.repeat(20_000, 1), at_one)
    tokens = engine._sample_tokens(logprobs, at_one)
    counts = torch.bincount(tokens, minlength=len(row)).double()
    expected = 20_000 * row.exp().double()
    expected[reader.banned_ids[0]] = 0
    likely = expected > 0
    assert counts[~likely].sum() == 0
    assert ((counts - expected)[likely] ** 2 / expected[likely]).sum() < 16.3  # 3 degrees of freedom
    assert logprobs.gather(-1, tokens[:, None])[:, 0].tolist() == pytest.approx(
        row[tokens].tolist(), abs=1e-5
    )
