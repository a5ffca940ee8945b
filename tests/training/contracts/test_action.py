"""The contract of actions: what belongs to which kind, and JSON as before without new parts."""

import pytest
from pydantic import ValidationError

from training.contracts.types import Action, ParsedCompletion, Turn

OLD = (
    '{"kind":"click","x":1,"y":2,"to_x":null,"to_y":null,"text":null,"keys":[],"scroll_x":0,"scroll_y":0,'
    '"seconds":0.0,"status":null}'
)


def test_an_action_without_new_parts_is_stored_as_before():
    assert Action(kind="click", x=1, y=2).model_dump_json() == OLD
    assert Action.model_validate_json(OLD) == Action(kind="click", x=1, y=2)


@pytest.mark.parametrize(
    "parts",
    [
        {"kind": "click", "x": 1, "y": 2, "modifiers": ("ctrl", "shift")},
        {"kind": "right_click", "presses": 2},
        {"kind": "drag", "to_x": 1, "to_y": 2, "button": "right", "modifiers": ("shift",)},
        {"kind": "scroll", "scroll_y": 3, "modifiers": ("ctrl",)},
        {"kind": "key", "keys": ("Down",), "presses": 100},
        {"kind": "key", "keys": ("Right",), "seconds": 60.0},
        {"kind": "key_down", "keys": ("shift",)},
        {"kind": "key_up", "keys": ("shift", "a")},
        {"kind": "mouse_down", "x": 1, "y": 2, "button": "middle"},
        {"kind": "mouse_up"},
        {"kind": "paste", "text": "é 日本 😀"},
    ],
)
def test_new_parts_travel_as_json(parts):
    action = Action(**parts)
    assert Action.model_validate_json(action.model_dump_json()) == action


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"kind": "click", "modifiers": ("control",)}, "'control' is no modifier; use ctrl"),
        ({"kind": "click", "modifiers": ("ctrl", "ctrl")}, "named twice"),
        ({"kind": "type", "text": "a", "modifiers": ("ctrl",)}, "modifiers: type takes none"),
        ({"kind": "click", "button": "right"}, "button: click takes none"),
        ({"kind": "mouse_down", "button": "side"}, "button"),
        ({"kind": "key", "keys": ("a",), "presses": 101}, "presses"),
        ({"kind": "key", "keys": ("a",), "presses": 0}, "presses"),
        ({"kind": "double_click", "presses": 2}, "presses: double_click is not counted"),
        ({"kind": "key", "keys": ("a",), "seconds": 61}, "seconds: a key is held from 0 to 60 s"),
        ({"kind": "key", "keys": ("a",), "seconds": float("nan")}, "seconds"),
        ({"kind": "key", "keys": ("a",), "seconds": 1, "presses": 2}, "presses: a key that is held"),
        ({"kind": "key_down"}, "keys: key_down needs"),
        ({"kind": "key_up", "keys": tuple("abcdef")}, "keys: key_up needs"),
        ({"kind": "paste", "text": ""}, "text: paste needs"),
    ],
)
def test_what_does_not_belong_together_is_refused_by_the_fields_name(parts, words):
    with pytest.raises(ValidationError) as caught:
        Action(**parts)
    assert words in str(caught.value)


def test_the_action_of_several_is_the_last_one():
    down, up = Action(kind="key_down", keys=("ctrl",)), Action(kind="key_up", keys=("ctrl",))
    assert ParsedCompletion(actions=(down, up)).action == up
    assert ParsedCompletion(error="no").action is None


def test_a_turn_with_one_action_is_stored_as_before():
    observation = {"sha256": "", "width": 1, "height": 1}
    turn = Turn(index=0, observation=observation, action=Action(kind="click", x=1, y=2))
    assert "earlier_actions" not in turn.model_dump()
    several = turn.model_copy(update={"earlier_actions": (Action(kind="key_down", keys=("ctrl",)),)})
    read = Turn.model_validate_json(several.model_dump_json())
    assert [action.kind for action in read.actions] == ["key_down", "click"]
    assert Turn(index=0, observation=observation).actions == ()
