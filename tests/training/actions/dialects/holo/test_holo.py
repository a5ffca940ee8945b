"""Holo's JSON carries its thought; a tool's name says where it acts, which changes nothing here."""

import json

import pytest

from training.actions.dialects.registry import find_dialect
from training.actions.parse_completion import parse_completion
from training.contracts.config import CoordinateSpace
from training.contracts.types import Action

SCREEN = (1920, 1080)


def parse(tool: dict, **others):
    text = json.dumps({"note": None, "thought": "I go on.", "tool_call": tool})
    return parse_completion(text, dialect="holo", space=CoordinateSpace.RELATIVE, screen=SCREEN, **others)


@pytest.mark.parametrize("name", ["click_desktop", "click_element", "click", "left_click"])
def test_the_end_of_a_tools_name_does_not_matter(name):
    parsed = parse({"tool_name": name, "element": "OK", "x": 500, "y": "500"})
    assert parsed.actions == (Action(kind="click", x=960, y=540),)
    assert parsed.thought == "I go on."


def test_writing_at_a_place_clicks_it_first():
    parsed = parse({"tool_name": "write_element", "content": "fox", "x": 0, "y": 0}, most=2)
    assert [action.kind for action in parsed.actions] == ["click", "type"]


def test_holo_1_says_action_and_its_writing_ends_with_return():
    def read(action: dict, **others):
        text = json.dumps({"note": "", "thought": "I go on.", "action": action})
        return parse_completion(text, dialect="holo", space=CoordinateSpace.SCREEN, screen=SCREEN, **others)

    clicked = read({"action": "click_element", "element": "OK", "x": 657, "y": 318})
    assert (clicked.actions, clicked.thought) == ((Action(kind="click", x=657, y=318),), "I go on.")
    wrote = read({"action": "write_element_abs", "content": "fox", "element": "box", "x": 5, "y": 6}, most=3)
    assert [action.kind for action in wrote.actions] == ["click", "type", "key"]
    assert wrote.actions[2].keys == ("Return",)
    assert read({"action": "answer", "content": "42"}).actions[0].text == "42"
    assert read({"action": "go_back"}).error == "go_back is a browser's tool; a desktop has none"
    assert read({"action": "left_click", "x": 5, "y": 6}).error, "a call of another model's dialect"


@pytest.mark.parametrize(
    ("tool", "part"),
    [
        ({"tool_name": "click_desktop", "x": 5}, "click_desktop needs x and y"),
        ({"tool_name": "hotkey_desktop", "keys": []}, "keys must be a list"),
        ({"tool_name": "scroll_desktop", "direction": "in"}, "direction must be"),
        ({"tool_name": "fly"}, "unknown tool 'fly'"),
    ],
)
def test_anything_else_is_an_error_that_says_why(tool, part):
    assert part in (parse(tool).error or "")


def test_the_list_of_previous_actions_has_the_thoughts():
    words = find_dialect("holo").words
    assert words('{"thought": "I go on.", "tool_call": {"tool_name": "wait"}}') == "I go on."
    assert words("no call") == "no call"
