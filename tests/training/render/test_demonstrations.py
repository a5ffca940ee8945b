"""Recorded trajectories as another model's demonstrations: what is written, learned and skipped."""

from __future__ import annotations

from pathlib import Path

import pytest

from testing.training.sample_values import make_task, make_trajectory, make_turn
from testing.training.tiny_model import renderer
from training.batch.samples import build_samples
from training.content.recipes.tiny.make_checkpoint import TinySizes, make_tiny
from training.contracts.config import ModelConfig, PromptConfig, SamplingConfig
from training.contracts.types import Action, Completion, Observation, Source, Trajectory, Turn
from training.render.demonstrations import NotRenderable, as_demonstration
from training.render.renderer import Renderer

LIMITS = SamplingConfig()
SCREEN = (512, 384)
CLICK = Action(kind="click", x=179, y=276)


@pytest.fixture(scope="module")
def large() -> Renderer:
    """704 tokens."""
    return renderer()


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Renderer:
    """448 tokens."""
    folder = make_tiny(tmp_path_factory.mktemp("m") / "small", seed=0, sizes=TinySizes(vocabulary=448))
    return Renderer.from_folder(folder, ModelConfig(), PromptConfig())


def sampled(reader: Renderer, text: str, index: int = 0, **changes: object) -> Turn:
    """A turn that a policy of `reader` sampled."""
    ids = tuple(reader.completion_ids(text))
    completion = Completion(
        text=text,
        token_ids=ids,
        behaviour_logprobs=(-0.5,) * len(ids),
        fingerprint=reader.fingerprint,
    )
    observation = Observation(sha256="", width=SCREEN[0], height=SCREEN[1], text="Open it")
    return Turn(index=index, completion=completion, observation=observation, **changes)


def persons(index: int, action: Action | None = CLICK) -> Turn:
    observation = Observation(sha256="", width=SCREEN[0], height=SCREEN[1])
    return Turn(index=index, source=Source.HUMAN, observation=observation, action=action)


def trajectory_of(*turns: Turn) -> Trajectory:
    task = make_task().model_copy(update={"screen": SCREEN})
    return make_trajectory(1, 1.0, turns=turns, task=task)


def learned(reader: Renderer, trajectory: Trajectory) -> str:
    """The text of all tokens with a loss, as the trainer gets them."""
    samples = build_samples(trajectory, reader, advantage=1.0)
    assert all(sample.as_likelihood for sample in samples)
    marked = [
        token
        for sample in samples
        for token, bit in zip(sample.token_ids, sample.loss_mask, strict=True)
        if bit
    ]
    return reader.tokenizer.decode(marked)


def test_tokens_of_the_same_context_are_kept_without_their_logprobs(large: Renderer) -> None:
    turn = sampled(large, '{"action":"wait","time":1}', action=Action(kind="wait", seconds=1))
    kept = as_demonstration(trajectory_of(turn), large, LIMITS)
    assert kept.turns[0].completion == turn.completion.model_copy(update={"behaviour_logprobs": ()})


@pytest.mark.parametrize("changes", [{}, {"fingerprint": ""}])
def test_a_vocabulary_of_704_never_reaches_a_model_of_448(
    large: Renderer, small: Renderer, changes: dict
) -> None:
    turn = sampled(large, "zebra zebra", action=CLICK)
    completion = turn.completion.model_copy(update={"token_ids": (450, 703, large.stop_id), **changes})
    for reader in (small, large) if changes else (small,):
        shown = as_demonstration(
            trajectory_of(turn.model_copy(update={"completion": completion})), reader, LIMITS
        )
        (sample,) = build_samples(shown, reader, advantage=1.0)
        assert max(sample.token_ids) < len(reader.tokenizer)
        assert '"left_click"' in learned(reader, shown)


def test_ids_outside_the_vocabulary_are_rendered_again_whatever_the_fingerprint_says(small: Renderer) -> None:
    turn = sampled(small, "x", action=CLICK)
    completion = turn.completion.model_copy(update={"token_ids": (703, small.stop_id)})
    shown = as_demonstration(trajectory_of(turn.model_copy(update={"completion": completion})), small, LIMITS)
    assert shown.turns[0].completion.token_ids == ()


def test_permille_json_becomes_pyautogui_in_pixels(large: Renderer) -> None:
    pixels = renderer(dialect="pyautogui", coordinate_space="screen")
    turn = sampled(large, '{"action":"left_click","coordinate":[350,720]}', action=CLICK)
    shown = as_demonstration(trajectory_of(turn), pixels, LIMITS)
    assert learned(pixels, shown) == "pyautogui.click(179, 276)<|im_end|>"


def test_points_are_those_of_the_recorded_screen_not_of_the_tasks_default(large: Renderer) -> None:
    seen = Observation(sha256="", width=1920, height=1080, text="Open it")
    turn = persons(0, Action(kind="click", x=1919, y=1079)).model_copy(update={"observation": seen})
    assert "[1000,1000]" in learned(large, as_demonstration(trajectory_of(turn), large, LIMITS))


def take_over(reader: Renderer) -> Trajectory:
    """The agent errs and babbles, a person mends it, the agent ends."""
    done = Action(kind="terminate", status="success")
    return trajectory_of(
        sampled(reader, '{"action":"wait","time":7}', 0, action=Action(kind="wait", seconds=7)),
        sampled(reader, "blah", 1, parse_error="no action"),
        persons(2),
        sampled(reader, "bluh", 3, parse_error="no action"),
        sampled(reader, '{"action":"terminate","status":"success"}', 4, action=done),
    )


@pytest.mark.parametrize("same", [True, False])
def test_of_a_take_over_the_persons_turns_are_learned_and_the_agents_before_are_context(
    large: Renderer, small: Renderer, same: bool
) -> None:
    reader = large if same else small
    shown = as_demonstration(take_over(large), reader, LIMITS)
    assert [turn.is_context for turn in shown.turns] == [True, True, False, True, False]
    (sample,) = build_samples(shown, reader, advantage=1.0)
    whole = reader.tokenizer.decode(list(sample.token_ids))
    assert '"time":7' in whole, "the person's turn is learned after what the agent did"
    assert "blah" in whole
    assert learned(reader, shown) == (
        '{"action":"left_click","coordinate":[350,720]}<|im_end|>'
        '{"action":"terminate","status":"success"}<|im_end|>'
    )


def test_an_imported_mask_is_respected(large: Renderer) -> None:
    masked = persons(0).model_copy(update={"is_context": True})
    key = persons(1, Action(kind="key", keys=("Return",)))
    shown = as_demonstration(trajectory_of(masked, key), large, LIMITS)
    assert learned(large, shown) == '{"action":"key","keys":["Return"]}<|im_end|>'


@pytest.mark.parametrize(
    ("turns", "prompt", "limits", "reason", "words"),
    [
        ((persons(0, None),), {}, LIMITS, "no_action", "turn 1 has no typed action"),
        ((persons(0),), {"dialect": "keyboard"}, LIMITS, "not_writable", "turn 1 cannot be written"),
        (
            (persons(0, Action(kind="type", text="word " * 90)),),
            {},
            SamplingConfig(max_context_tokens=64),
            "too_long",
            "sampling.max_context_tokens = 64",
        ),
        ((make_turn(parse_error="no action"),), {}, LIMITS, "nothing_to_learn", "none of its turns"),
        ((), {}, LIMITS, "nothing_to_learn", "none of its turns"),
    ],
)
def test_what_cannot_be_imitated_says_why(
    turns: tuple[Turn, ...], prompt: dict, limits: SamplingConfig, reason: str, words: str
) -> None:
    with pytest.raises(NotRenderable, match=words) as caught:
        as_demonstration(trajectory_of(*turns), renderer(**prompt), limits)
    assert caught.value.reason == reason


def test_a_group_sampled_trajectory_is_trained_on_as_before(large: Renderer, tmp_path: Path) -> None:
    """Rules of imitation are none of GRPO's: completions that meant nothing keep their loss."""
    mine = trajectory_of(
        sampled(large, "blah", 0, parse_error="no action"), sampled(large, "wait", 1, action=CLICK)
    )
    (sample,) = build_samples(mine, large, advantage=1.0)
    assert not sample.as_likelihood
    tokens = [token for turn in mine.turns for token in turn.completion.token_ids]
    marked = [token for token, bit in zip(sample.token_ids, sample.loss_mask, strict=True) if bit]
    assert marked == tokens
