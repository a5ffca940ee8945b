"""In which form a replay entry enters a step."""

from __future__ import annotations

from pathlib import Path

import pytest

from testing.training.toy_desktops import ToyDesktops, toy_tasks
from tests.training.conftest import toy_config
from training.batch.samples import build_samples, has_behaviour_logprobs
from training.contracts.coordinator import ReplayCandidate
from training.contracts.types import Action, Trajectory, TrajectoryStatus
from training.render.renderer import Renderer
from training.rollouts.replay_admission import ReplayAdmission

CLICK = Action(kind="click", x=20, y=40)


@pytest.fixture
def recorded(toy_desktops: ToyDesktops) -> Trajectory:
    """What the toy policy sampled, with the actions that it meant."""
    (member,) = toy_desktops.group(1, toy_tasks("train")[0], 1).trajectories
    turns = [turn.model_copy(update={"action": CLICK}) for turn in member.turns]
    return member.model_copy(update={"turns": tuple(turns)})


@pytest.fixture
def admission(toy_model: Path, toy_renderer: Renderer):
    def admission(**sections: dict) -> ReplayAdmission:
        config = toy_config(toy_model, **sections)
        reader = Renderer(toy_renderer.tokenizer, toy_renderer.image_processor, config.prompt)
        return ReplayAdmission(renderer=reader, config=config, vocabulary=400)

    return admission


def candidate(trajectory: Trajectory, age: int | None = 3) -> ReplayCandidate:
    return ReplayCandidate(entry_id=5, label="gold", policy_age=age, trajectory=trajectory)


def test_the_same_context_reuses_every_token_and_logprob(admission, recorded: Trajectory) -> None:
    assert admission().admit(candidate(recorded)).trajectory == recorded


@pytest.mark.parametrize(("preset", "reason"), [("first-desk.v2", "at_limit"), ("task-score.v1", None)])
def test_what_a_limit_ended_enters_only_where_the_state_is_paid(
    admission, recorded: Trajectory, preset: str, reason: str | None
) -> None:
    judge = admission(rewards={"preset": preset})
    cut_off = recorded.model_copy(update={"status": TrajectoryStatus.TRUNCATED})
    assert (judge.admit(candidate(cut_off)) is None) is (reason is not None)
    assert [skip.reason for skip in judge.skips] == ([reason] if reason else [])
    assert judge.admit(candidate(recorded)) is not None


@pytest.mark.parametrize("prompt", [{"dialect": "pyautogui"}, {"coordinate_space": "screen"}])
def test_another_context_is_imitated_without_a_ratio(admission, recorded: Trajectory, prompt: dict) -> None:
    entered = admission(prompt=prompt).admit(candidate(recorded)).trajectory
    assert not has_behaviour_logprobs(entered)
    expected = "pyautogui" if "dialect" in prompt else '"coordinate":[20,40]'
    assert all(expected in turn.completion.text for turn in entered.turns)


def test_a_completion_that_would_stand_elsewhere_is_rendered_again(admission, recorded: Trajectory) -> None:
    completion = recorded.turns[0].completion.model_copy(update={"num_prompt_tokens": 3})
    first = recorded.turns[0].model_copy(update={"completion": completion})
    moved = recorded.model_copy(update={"turns": (first, *recorded.turns[1:])})
    entered = admission().admit(candidate(moved)).trajectory
    assert not has_behaviour_logprobs(entered)


@pytest.mark.parametrize("logprobs", [lambda found: found[1:], lambda found: (*found[1:], float("inf"))])
def test_what_has_no_sound_logprobs_is_imitated(admission, recorded: Trajectory, logprobs) -> None:
    completion = recorded.turns[0].completion
    broken = completion.model_copy(update={"behaviour_logprobs": logprobs(completion.behaviour_logprobs)})
    first = recorded.turns[0].model_copy(update={"completion": broken})
    changed = recorded.model_copy(update={"turns": (first, *recorded.turns[1:])})
    mine = admission()
    assert not has_behaviour_logprobs(mine.admit(candidate(changed)).trajectory)
    assert mine.skips == []


def test_what_is_longer_than_the_context_is_skipped_by_name(admission, recorded: Trajectory) -> None:
    mine = admission(sampling={"max_context_tokens": 64})
    assert mine.admit(candidate(recorded)) is None
    assert [skip.reason for skip in mine.skips] == ["too_long"]


@pytest.mark.parametrize(
    ("age", "replay", "reused", "reason"),
    [
        (3, {"max_policy_age": 3}, True, None),
        (4, {"max_policy_age": 3}, None, "too_old"),
        (None, {"max_policy_age": 3}, False, None),
        (None, {"unknown_policy_age": "reuse"}, True, None),
        (None, {"unknown_policy_age": "likelihood"}, False, None),
        (None, {"unknown_policy_age": "skip"}, None, "unknown_age"),
    ],
)
def test_the_age_of_the_policy_decides_over_a_ratio(
    admission, recorded: Trajectory, age: int | None, replay: dict, reused: bool | None, reason: str | None
) -> None:
    mine = admission(replay=replay)
    entered = mine.admit(candidate(recorded, age))
    assert (has_behaviour_logprobs(entered.trajectory) if entered else None) is reused
    assert [skip.reason for skip in mine.skips] == ([reason] if reason else [])


def test_a_demonstration_never_ages(admission, recorded: Trajectory) -> None:
    turns = tuple(turn.model_copy(update={"completion": None, "source": "human"}) for turn in recorded.turns)
    shown = recorded.model_copy(update={"turns": turns})
    assert admission(replay={"max_policy_age": 0, "unknown_policy_age": "skip"}).admit(candidate(shown, None))


def test_a_masked_turn_stays_in_the_context_and_the_others_keep_their_ratio(
    admission, recorded: Trajectory
) -> None:
    """The loss mask leaves the masked turn's tokens out, at the same places as without a mask."""
    masked = recorded.turns[0].model_copy(update={"is_context": True})
    changed = recorded.model_copy(update={"turns": (masked, *recorded.turns[1:])})
    mine = admission()
    entered = mine.admit(candidate(changed)).trajectory
    assert has_behaviour_logprobs(entered)
    (whole,), (some,) = (
        build_samples(one, mine.renderer, advantage=1.0, image_token_id=mine.renderer.image_pad_id)
        for one in (recorded, entered)
    )
    assert some.token_ids == whole.token_ids
    left_out = len(masked.completion.token_ids)
    first = whole.loss_mask.index(1)
    assert some.loss_mask[: first + left_out] == (0,) * (first + left_out)
    assert some.loss_mask[first + left_out :] == whole.loss_mask[first + left_out :]
    assert sum(some.loss_mask) == sum(whole.loss_mask) - left_out > 0
