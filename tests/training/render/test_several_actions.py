"""Turns with several actions as one completion, where the prompt has such."""

import pytest

from training.actions.parse_completion import parse_completion
from training.actions.several_actions import turn_text
from training.actions.write_completion import completion_text
from training.contracts.config import PromptConfig
from training.contracts.types import Action, Observation, Turn
from training.render.prompts import system_text

SCREEN = (1280, 720)
DOWN, UP = (Action(kind=kind, keys=("shift",)) for kind in ("key_down", "key_up"))
CLICK = Action(kind="click", x=0, y=0)
TURN = Turn(
    index=0, observation=Observation(sha256="", width=1, height=1), earlier_actions=(DOWN, CLICK), action=UP
)


class Writer:
    def __init__(self, **settings):
        self.prompt = PromptConfig.model_validate(settings)

    def action_text(self, action, screen):
        return completion_text(action, screen, self.prompt)


WITH_SHIFT = Action(kind="click", x=0, y=0, modifiers=("shift",))


@pytest.mark.parametrize(("dialect", "read"), [("json", (DOWN, CLICK, UP)), ("pyautogui", (WITH_SHIFT,))])
def test_several_actions_are_one_completion_that_means_the_same(dialect, read):
    text = turn_text(Writer(dialect=dialect, actions_per_turn=3), TURN, SCREEN)
    assert parse_completion(text, dialect=dialect, screen=SCREEN, most=3).actions == read


def test_more_than_the_prompt_allows_cannot_be_written():
    with pytest.raises(ValueError, match="3 actions in one completion: more than one action: 3"):
        turn_text(Writer(dialect="json", actions_per_turn=2), TURN, SCREEN)


def test_the_prompt_says_how_many_actions_may_stand_in_an_answer():
    one, four = (
        system_text(PromptConfig.model_validate({"style": "computer-use", "actions_per_turn": count}))
        for count in (1, 4)
    )
    assert "exactly one action" in one
    assert "exactly one action" not in four
    assert "up to 4 actions" in four
