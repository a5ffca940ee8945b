"""Anthropic's computer tool: what it says by `text`, and what it has no word for."""

import json

import pytest

from training.actions.parse_completion import parse_completion
from training.actions.write_completion import format_action
from training.contracts.config import CoordinateSpace
from training.contracts.types import Action

SCREEN = (1920, 1080)


def written(action: Action) -> dict:
    return json.loads(format_action(action, "anthropic", CoordinateSpace.SCREEN, SCREEN))["input"]


def test_keys_held_during_a_click_are_its_text():
    action = Action(kind="click", x=5, y=6, modifiers=("ctrl", "shift"))
    assert written(action) == {"action": "left_click", "coordinate": [5, 6], "text": "ctrl+shift"}


def test_the_plus_key_goes_by_its_name():
    action = Action(kind="key", keys=("ctrl", "+"))
    assert written(action) == {"action": "key", "text": "ctrl+plus"}
    text = format_action(action, "anthropic", CoordinateSpace.SCREEN, SCREEN)
    assert parse_completion(text, dialect="anthropic", screen=SCREEN).action == action


@pytest.mark.parametrize(
    "action",
    [Action(kind="drag", to_x=1, to_y=2, modifiers=("shift",)), Action(kind="key", keys=("a",), presses=2)],
)
def test_what_the_tool_lacks_is_refused_by_name(action):
    with pytest.raises(ValueError, match="the anthropic dialect has no word"):
        written(action)
