"""OpenAI's computer tool: paths, held keys, capital letters, and what it has no word for."""

import json

import pytest

from training.actions.parse_completion import parse_completion
from training.actions.write_completion import format_action
from training.contracts.config import CoordinateSpace
from training.contracts.types import Action

SCREEN = (1920, 1080)


def parse(action: dict, most: int = 1):
    return parse_completion(
        json.dumps(action), dialect="openai", space=CoordinateSpace.SCREEN, screen=SCREEN, most=most
    )


def test_a_path_of_more_than_two_points_is_a_button_held_from_point_to_point():
    path = [{"x": 1, "y": 2}, {"x": 3, "y": 4}, {"x": 5, "y": 6}]
    parsed = parse({"type": "drag", "path": path}, most=4)
    assert parsed.actions == (
        Action(kind="mouse_down", x=1, y=2),
        Action(kind="move", x=3, y=4),
        Action(kind="move", x=5, y=6),
        Action(kind="mouse_up"),
    )


def test_capital_letters_are_the_keys_of_their_small_ones():
    assert parse({"type": "keypress", "keys": ["CTRL", "S"]}).action == Action(kind="key", keys=("ctrl", "s"))


@pytest.mark.parametrize(
    ("action", "part"),
    [
        ({"type": "click", "x": 1, "y": 2, "button": "back"}, "button must be"),
        ({"type": "click", "x": 1, "y": 2, "keys": ["A"]}, "holds modifiers only"),
        ({"type": "drag", "path": [[1, 2]]}, "two points or more"),
        ({"type": "keypress", "keys": []}, "keys must be a list"),
    ],
)
def test_anything_else_is_an_error_that_says_why(action, part):
    assert part in (parse(action).error or "")


@pytest.mark.parametrize(
    "action",
    [
        Action(kind="terminate", status="success"),
        Action(kind="key", keys=("S",)),
        Action(kind="triple_click", x=1, y=2),
    ],
)
def test_what_the_tool_lacks_is_refused_by_name(action):
    with pytest.raises(ValueError, match="the openai dialect has no word"):
        format_action(action, "openai")
