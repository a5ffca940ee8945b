"""Windowed histories: any trajectory becomes samples that are exactly what the policy saw and wrote."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from testing.training.sample_values import make_task, make_trajectory
from testing.training.tiny_model import SIZE, Frames, renderer, screenshot, tiny_folder
from training.batch.samples import Sample, build_samples
from training.contracts.config import ModelConfig, PromptConfig, SamplingConfig
from training.contracts.policy_server import TurnRequest
from training.contracts.types import Completion, Observation, Trajectory, Turn
from training.render.history_window import LEFT_OUT, SeenTurn, keeps_image, window_start
from training.render.renderer import Renderer
from training.sampler.engine import SampledCompletion
from training.sampler.engines.request_batching import BatchingEngine
from training.sampler.sessions import PolicyService, ServiceError

PROMPTS = st.builds(
    PromptConfig,
    style=st.sampled_from(["first-desk", "computer-use"]),
    history=st.sampled_from(["full", "window", "window"]),
    keep_first_images=st.integers(0, 2),
    keep_last_images=st.integers(1, 3),
    window_slack=st.integers(0, 3),
    observation=st.sampled_from([["screenshot"], []]),
)
TURNS = st.lists(
    st.tuples(
        st.booleans(),  # has a screenshot
        st.sampled_from(["", "clicked", "Choose row 4."]),
        st.lists(st.integers(300, 340), min_size=1, max_size=4),
        st.booleans(),  # ends with the stop token
    ),
    min_size=1,
    max_size=8,
)
BASE = renderer()


def reader_of(prompt: PromptConfig) -> Renderer:
    return Renderer(BASE.tokenizer, BASE.image_processor, prompt)


def trajectory_of(reader: Renderer, turns: list) -> Trajectory:
    """A trajectory as the policy server would have recorded it."""
    seen, recorded = [], []
    for index, (has_image, text, words, stops) in enumerate(turns):
        has_image = has_image and reader.prompt.shows_screen
        seen.append(SeenTurn(text=text, image_size=SIZE if has_image else None))
        num_prompt_tokens = len(reader.context(seen).token_ids)
        ids = tuple(words) + ((reader.stop_id,) if stops else ())
        seen[-1] = replace(seen[-1], completion=ids)
        observation = Observation(
            sha256=f"{index:064x}" if has_image else "", width=SIZE[0], height=SIZE[1], text=text
        )
        completion = Completion(
            text="x",
            token_ids=ids,
            behaviour_logprobs=tuple(-0.25 * (place + 1) for place in range(len(ids))),
            policy_version=index,
            num_prompt_tokens=num_prompt_tokens,
        )
        recorded.append(Turn(index=index, observation=observation, completion=completion))
    return make_trajectory(turns=tuple(recorded), task=make_task())


def samples_of(reader: Renderer, trajectory: Trajectory, **options: object) -> list[Sample]:
    return build_samples(trajectory, reader, advantage=0.5, image_token_id=reader.image_pad_id, **options)


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(prompt=PROMPTS, turns=TURNS, last_turns=st.integers(0, 4))
def test_pixels_grids_and_masks_stay_consistent_after_any_compression(prompt, turns, last_turns) -> None:
    reader = reader_of(prompt)
    trajectory = trajectory_of(reader, turns)
    places = range(len(trajectory.turns))
    samples = samples_of(reader, trajectory, trained_turns=places[-last_turns:] if last_turns else None)
    trained = [turn.completion for turn in trajectory.turns][-last_turns:]
    for sample in samples:
        pads = sample.token_ids.count(reader.image_pad_id)
        assert pads == sum(t * h * w for t, h, w in sample.grids) // reader.merge**2
        assert len(sample.images) == len(sample.grids)
        lengths = {len(sample.token_ids), len(sample.loss_mask), len(sample.behaviour_logprobs)}
        assert lengths == {len(sample.policy_versions)}
    marked = [
        (token, logprob, version)
        for sample in samples
        for token, bit, logprob, version in zip(
            sample.token_ids, sample.loss_mask, sample.behaviour_logprobs, sample.policy_versions, strict=True
        )
        if bit
    ]
    expected = [
        (token, logprob, one.policy_version)
        for one in trained
        for token, logprob in zip(one.token_ids, one.behaviour_logprobs, strict=True)
    ]
    assert marked == expected, "every trained token once, in order, with its own logprob and version"
    total = sum(sample.num_loss_tokens for sample in samples)
    assert {sample.trajectory_tokens or sample.num_loss_tokens for sample in samples} == {total}
    if prompt.history == "full":
        assert len(samples) == 1


@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(prompt=PROMPTS, turns=TURNS)
def test_every_completion_is_trained_in_the_context_it_was_sampled_in(prompt, turns) -> None:
    reader = reader_of(prompt)
    trajectory = trajectory_of(reader, turns)
    sequences = reader.render_sequences(trajectory)
    seen = []
    for turn in trajectory.turns:
        has_image = bool(turn.observation.sha256)
        seen.append(SeenTurn(text=turn.observation.text, image_size=SIZE if has_image else None))
        context = reader.context(seen)
        (place,) = [
            (rendered, start)
            for rendered in sequences
            for index, (start, _) in zip(rendered.turns, rendered.spans, strict=True)
            if index == turn.index
        ]
        rendered, start = place
        assert rendered.token_ids[:start] == context.token_ids
        shown = [trajectory.turns[image].observation.sha256 for image in context.images]
        assert rendered.images[: len(shown)] == shown
        seen[-1] = replace(seen[-1], completion=turn.completion.token_ids)


def test_a_window_keeps_the_first_and_the_last_screenshots_and_says_what_it_left_out() -> None:
    prompt = PromptConfig(history="window", keep_first_images=1, keep_last_images=2)
    kept = [[turn for turn in range(now + 1) if keeps_image(turn, now, prompt)] for now in range(5)]
    assert kept == [[0], [0, 1], [0, 1, 2], [0, 2, 3], [0, 3, 4]]
    reader = reader_of(prompt)
    context = reader.context([SeenTurn(text="Go.", image_size=SIZE, completion=(70,))] * 5)
    assert reader.tokenizer.decode(context.token_ids).count(LEFT_OUT) == 2


def test_slack_moves_the_window_in_strides() -> None:
    prompt = PromptConfig(history="window", keep_first_images=0, keep_last_images=1, window_slack=2)
    assert [window_start(now, prompt) for now in range(8)] == [0, 0, 0, 3, 3, 3, 6, 6]


def test_a_window_makes_one_sequence_per_distinct_prefix() -> None:
    turns = [(True, "Go.", [310], True)] * 6
    numbers = {}
    for slack in (0, 2):
        prompt = PromptConfig(history="window", keep_first_images=0, keep_last_images=1, window_slack=slack)
        reader = reader_of(prompt)
        numbers[slack] = len(samples_of(reader, trajectory_of(reader, turns)))
    assert numbers == {0: 6, 2: 2}


def test_a_completion_sampled_in_another_context_is_refused() -> None:
    reader = reader_of(PromptConfig())
    trajectory = trajectory_of(reader, [(True, "Go.", [310], True), (True, "", [311], True)])
    windowed = reader_of(PromptConfig(history="window", keep_first_images=0, keep_last_images=1))
    with pytest.raises(ValueError, match=r"turn 1: \d+ tokens before its completion, but the policy server"):
        samples_of(windowed, trajectory)


class Recorder:
    """An engine that draws two fixed tokens and remembers what it was given."""

    policy_version = 3

    def __init__(self, stop_id: int) -> None:
        self.stop_id = stop_id
        self.prompts: list[tuple[list[int], int, bool]] = []

    def generate(self, sequences: list, samplings: list) -> list[SampledCompletion]:
        found = []
        for sequence in sequences:
            kept_cache = sequence.cache is not None
            self.prompts.append((list(sequence.token_ids), len(sequence.pixels), kept_cache))
            assert len(sequence.pixels) == len(sequence.grids)
            generated = [310, self.stop_id]
            sequence.token_ids += generated
            sequence.cache = "made"
            found.append(
                SampledCompletion(
                    token_ids=generated, logprobs=[-1.0, -2.0], finish_reason="stop", policy_version=3
                )
            )
        return found


def serve_turns(prompt: PromptConfig, num_turns: int, **limits: int) -> tuple[Recorder, Trajectory, Renderer]:
    """A trajectory of `num_turns` through the policy server's sessions."""
    reader = Renderer.from_folder(tiny_folder(), ModelConfig(), prompt)
    engine, frames, turns = Recorder(reader.stop_id), Frames(), []

    async def run() -> None:
        service = PolicyService(
            BatchingEngine(engine, reader.pixels), reader, limits=SamplingConfig(**limits)
        )
        for index in range(num_turns):
            png = screenshot(index)
            text = "Choose row 2." if index == 0 else "clicked"
            request = TurnRequest(trajectory_id="t", turn_index=index, text=text, max_tokens=4)
            completion = await service.complete(request, png)
            observation = Observation(sha256=frames.store(png), width=SIZE[0], height=SIZE[1], text=text)
            turns.append(Turn(index=index, observation=observation, completion=completion))
        await service.close()

    asyncio.run(run())
    return engine, make_trajectory(turns=tuple(turns)), reader


@pytest.mark.parametrize("history", ["full", "window"])
def test_the_server_shows_the_engine_exactly_what_the_trainer_trains_on(history: str) -> None:
    prompt = PromptConfig(history=history, keep_first_images=1, keep_last_images=1, window_slack=1)
    engine, trajectory, reader = serve_turns(prompt, 5, max_context_tokens=4096)
    sequences = reader.render_sequences(trajectory)
    trained = {
        turn: (list(rendered.token_ids[:start]))
        for rendered in sequences
        for turn, (start, _) in zip(rendered.turns, rendered.spans, strict=True)
    }
    assert [trained[turn] for turn in range(5)] == [prompt_ids for prompt_ids, _, _ in engine.prompts]
    samples_of(reader, trajectory)
    starts = [rendered.turns[0] for rendered in sequences]
    kept = [turn for turn, (_, _, kept_cache) in enumerate(engine.prompts) if kept_cache]
    assert kept == [turn for turn in range(5) if turn not in starts], "a cache lives as long as its prefix"


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"max_image_tokens": 100}, "144 image pads do not fit sampling.max_image_tokens = 100"),
        ({"max_text_tokens": 64}, "do not fit sampling.max_text_tokens = 64"),
        ({"max_context_tokens": 150}, "do not fit sampling.max_context_tokens = 150"),
    ],
)
def test_text_and_image_budgets_are_separate_and_named(limits: dict, message: str) -> None:
    with pytest.raises(ServiceError, match=message) as caught:
        serve_turns(PromptConfig(), 5, **({"max_context_tokens": 4096} | limits))
    assert caught.value.code == "context_full"


@pytest.mark.parametrize("history", ["full", "window", "actions"])
def test_every_picture_of_a_tool_calling_history_has_its_pads(history: str) -> None:
    """What the engine gets, and what chat templates make of screenshots that tools answer with."""
    prompt = PromptConfig(style="tool-call", dialect="tool-call", history=history, keep_last_images=3)
    reader = reader_of(prompt)
    turns = [SeenTurn(text="Go.", image_size=SIZE, completion=(300, reader.stop_id)) for _ in range(5)]
    context = reader.context([*turns, SeenTurn(text="", image_size=SIZE)])
    expected = {"full": 6, "window": 4, "actions": 3}[history]
    assert len(context.grids) == len(context.images) == expected
    pads = sum(t * h * w for t, h, w in context.grids) // reader.merge**2
    assert context.token_ids.count(reader.image_pad_id) == pads
    answers = [{"role": "tool", "content": [{"type": "image"}]} for _ in context.grids]
    asked = {"role": "user", "content": [{"type": "text", "text": "Go."}]}
    text = reader.tokenizer.apply_chat_template([asked, *answers], tokenize=False)
    assert text.count("<|image_pad|>") == expected
