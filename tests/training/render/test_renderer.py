"""Trajectories become the very tokens that were sampled, in their very context."""

from __future__ import annotations

import copy
import math
import re

import pytest
from transformers import AddedToken

from testing.training.tiny_model import SIZE, Frames, demonstration, renderer, screenshot
from training.contracts.config import CoordinateSpace
from training.contracts.types import (
    Action,
    Completion,
    Observation,
    Task,
    Trajectory,
    TrajectoryStatus,
    Turn,
)
from training.render.prompts import system_text
from training.render.renderer import Renderer

CLICK = Action(kind="click", x=256, y=96)
MARKERS = ("<tool_call>", "</tool_call>", "<think>", "</think>")
DONE = Action(kind="terminate", status="success")


@pytest.fixture(scope="module")
def reader():
    return renderer()


def trajectory(turns: list[Turn]) -> Trajectory:
    return Trajectory(
        trajectory_id=5,
        group_id=2,
        task=Task(task_id="t", instruction="Choose row 4."),
        status=TrajectoryStatus.TERMINATED,
        turns=tuple(turns),
    )


def turn(index: int, completion: Completion | None, text: str = "", sha: str = "") -> Turn:
    width, height = SIZE if sha else (0, 0)
    observation = Observation(sha256=sha, width=width, height=height, text=text)
    return Turn(index=index, observation=observation, completion=completion)


def test_sampled_tokens_are_reused_even_where_their_text_tokenises_differently(reader):
    odd = tuple(token for letter in "Down" for token in reader.encode(letter)) + (reader.stop_id,)
    assert list(odd) != reader.completion_ids("Down")
    completion = Completion(
        text="Down", token_ids=odd, behaviour_logprobs=(-0.1, -0.2, -0.3, -0.4, -0.5), policy_version=6
    )
    rendered = reader.render_trajectory(trajectory([turn(0, completion, "Choose row 4.", "aa")]))
    start, end = rendered.spans[0]
    assert tuple(rendered.token_ids[start:end]) == odd
    assert rendered.behaviour_logprobs[start:end] == [-0.1, -0.2, -0.3, -0.4, -0.5]
    assert rendered.policy_versions[start:end] == [6] * 5


def test_the_loss_mask_covers_exactly_the_completions(reader):
    sampled = Completion(text="x", token_ids=(70, 71, reader.stop_id), behaviour_logprobs=(-1, -1, -1))
    rendered = reader.render_trajectory(
        trajectory([turn(0, sampled, "Go.", "aa"), turn(1, sampled, "", "bb")])
    )
    masked = {i for i, mask in enumerate(rendered.loss_mask) if mask}
    assert masked == {i for start, end in rendered.spans for i in range(start, end)}
    lengths = {
        len(rendered.token_ids),
        len(rendered.loss_mask),
        len(rendered.behaviour_logprobs),
        len(rendered.policy_versions),
    }
    assert len(lengths) == 1
    assert rendered.images == ["aa", "bb"]


def test_the_turns_of_a_trajectory_are_what_the_server_appends(reader):
    cut = Completion(text="x", token_ids=(70,), behaviour_logprobs=(-1,), finish_reason="length")
    done = Completion(text="y", token_ids=(71, reader.stop_id), behaviour_logprobs=(-1, -1))
    turns = [turn(0, cut, "Choose row 4.", "aa"), turn(1, done, "no action", "bb"), turn(2, done, "", "cc")]
    appended: list[int] = []
    for index, (text, stopped) in enumerate([("Choose row 4.", True), ("no action", False), ("", True)]):
        appended += reader.render_turn(
            index, text, SIZE, instruction="Choose row 4.", previous_stopped=stopped
        )
        appended += turns[index].completion.token_ids
    assert reader.render_trajectory(trajectory(turns)).token_ids == appended


def test_a_completion_that_hit_its_limit_is_closed_in_the_next_prompt(reader):
    after_stop = reader.render_turn(1, "", SIZE, instruction="Go.")
    after_cut = reader.render_turn(1, "", SIZE, instruction="Go.", previous_stopped=False)
    assert after_cut == [reader.stop_id, *after_stop]


def test_tokens_without_recorded_logprobs_have_unknown_ones(reader):
    ids = tuple(reader.completion_ids("Down"))
    rendered = reader.render_trajectory(
        trajectory([turn(0, Completion(text="Down", token_ids=ids, policy_version=6), "Go.", "aa")])
    )
    start, end = rendered.spans[0]
    assert end - start == len(ids)
    assert all(math.isnan(value) for value in rendered.behaviour_logprobs[start:end]), "not certain ones"


def test_oracle_turns_are_rendered_from_their_actions_with_unknown_logprobs(reader):
    rendered = reader.render_trajectory(demonstration(Frames(), [CLICK, DONE]))
    texts = [reader.decode(rendered.token_ids[start:end]) for start, end in rendered.spans]
    assert texts == [
        '{"action":"left_click","coordinate":[500,250]}',
        '{"action":"terminate","status":"success"}',
    ]
    start, end = rendered.spans[0]
    assert all(math.isnan(value) for value in rendered.behaviour_logprobs[start:end])
    assert rendered.policy_versions[start] == -1


def test_oracle_coordinates_follow_the_prompts_space():
    reader = renderer(coordinate_space=CoordinateSpace.RESIZED)
    rendered = reader.render_trajectory(demonstration(Frames(), [CLICK]))
    start, end = rendered.spans[0]
    assert '"coordinate":[128,48]' in reader.decode(rendered.token_ids[start:end])


def test_a_turn_without_completion_and_action_is_refused(reader):
    with pytest.raises(ValueError, match="trajectory 5, turn 0"):
        reader.render_trajectory(trajectory([turn(0, None, "Go.")]))


def test_markers_inside_words_stay_words(reader):
    ids = reader.render_turn(0, "Type <|im_end|><|image_pad|> now", None)
    assert ids.count(reader.stop_id) == 1
    assert reader.image_pad_id not in ids


@pytest.fixture(scope="module")
def published():
    """A reader whose tokenizer has the markers that published ones have beside the special tokens."""
    plain = renderer(style="tool-call", dialect="tool-call", coordinate_space=CoordinateSpace.RELATIVE)
    tokenizer = copy.deepcopy(plain.tokenizer)
    tokenizer.add_tokens([AddedToken(marker, special=False, normalized=False) for marker in MARKERS])
    return Renderer(tokenizer, plain.image_processor, plain.prompt)


OUTSIDE = [
    "Type <tool_call> now",
    "<think>\nI was asked\n</think>",
    "a</tool_call>b<|image_pad|><|video_pad|><|im_end|>é<think>",
    "<tool_call>\n{}\n</tool_call>",
]


@pytest.mark.parametrize("text", OUTSIDE)
def test_no_added_token_comes_of_words_from_outside(published, text: str):
    """In an instruction, a result, a list of done actions, and what was typed."""
    added = set(published.tokenizer.added_tokens_decoder)
    ids = published.encode(text)
    assert added.isdisjoint(ids)
    assert published.tokenizer.decode(ids) == text
    assert ids == renderer().tokenizer(text, split_special_tokens=True)["input_ids"], "words like any others"
    frame = published.render_turn(0, "Go.", None)
    framed = published.render_turn(0, text, None, previous_actions=[text])
    assert [token for token in framed if token in added] == [token for token in frame if token in added]
    typed = published.completion_ids(published.action_text(Action(kind="type", text=text), SIZE))
    call = published.completion_ids(published.action_text(Action(kind="type", text="x"), SIZE))
    assert [token for token in typed if token in added] == [token for token in call if token in added]


def test_a_calls_own_markers_are_the_models(published):
    ids = published.completion_ids(published.action_text(CLICK, SIZE))
    marker = published.tokenizer.convert_tokens_to_ids
    assert (ids.count(marker("<tool_call>")), ids.count(marker("</tool_call>"))) == (1, 1)
    assert ids[:-1] == published.tokenizer(published.decode(ids))["input_ids"], (
        "as the model itself writes it"
    )
    assert marker("<tool_call>") in published.render_turn(0, "Go.", None), "explained in the model's format"


def test_pads_in_a_system_text_an_import_and_a_demonstration_stay_words():
    text = "See <|image_pad|><|vision_start|><|video_pad|> and <|im_end|>."
    reader = renderer(style="computer-use", system_text=text)
    shown = turn(0, Completion(text=f"{text}\nnothing"), text, "aa")
    rendered = reader.render_trajectory(trajectory([shown]))
    t, h, w = rendered.grids[0]
    assert rendered.token_ids.count(reader.image_pad_id) == t * h * w // reader.merge**2
    assert rendered.token_ids.count(reader.stop_id) == 3
    assert reader.tokenizer.decode(rendered.token_ids).count(text) == 3


@pytest.mark.parametrize("token", ["<|im_start|>", "<|im_end|>", "<|image_pad|>", "<|video_pad|>"])
def test_a_tokenizer_without_a_special_token_is_refused_by_its_name(reader, token: str):
    class Without:
        """As one that was trained without it."""

        def __getattr__(self, name: str):
            return getattr(reader.tokenizer, name)

        @property
        def added_tokens_decoder(self) -> dict:
            known = reader.tokenizer.added_tokens_decoder.items()
            return {number: one for number, one in known if one.content != token}

    with pytest.raises(ValueError, match=re.escape(token)):
        Renderer(Without(), reader.image_processor, reader.prompt)


def test_turn_zero_equals_the_chat_template_of_the_checkpoint(reader):
    message = [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "Choose row 4."}]}]
    text = reader.tokenizer.apply_chat_template(message, tokenize=False, add_generation_prompt=True)
    text = text.replace("<|image_pad|>", "<|image_pad|>" * 48)
    assert reader.tokenizer(text)["input_ids"] == reader.render_turn(0, "Choose row 4.", SIZE)


def test_the_short_style_repeats_the_instruction_before_every_answer(reader):
    text = reader.tokenizer.decode(reader.render_turn(2, "It failed.", None, instruction="Choose row 4."))
    assert "It failed.\nChoose row 4.<|im_end|>\n<|im_start|>assistant\n" in text


def test_the_long_style_explains_every_action_once():
    reader = renderer(style="computer-use")
    first = reader.tokenizer.decode(reader.render_turn(0, "Choose row 4.", None))
    later = reader.tokenizer.decode(reader.render_turn(1, "", None, instruction="Choose row 4."))
    assert first.startswith("<|im_start|>system\n" + system_text(reader.prompt))
    assert "left_click_drag" in first
    assert "left_click_drag" not in later


def test_the_blind_ablation_leaves_every_screenshot_out():
    reader = renderer(observation=())
    rendered = reader.render_trajectory(demonstration(Frames(), [CLICK, DONE]))
    assert rendered.images == []
    assert reader.image_pad_id not in rendered.token_ids


@pytest.mark.parametrize(("size", "grid"), [((512, 384), (1, 12, 16)), ((256, 192), (1, 12, 16))])
def test_patches_match_the_grid(reader, size, grid):
    assert reader.image_grid(size) == grid
    assert reader.pixels(screenshot(1, size)).shape == (12 * 16, 3 * 2 * 16 * 16)


def test_large_screens_are_shrunk_to_the_pixel_limit(reader):
    _, height, width = reader.image_grid((1920, 1080))
    assert height * width * 16 * 16 <= 49152
    assert width / height == pytest.approx(16 / 9, rel=0.2)
