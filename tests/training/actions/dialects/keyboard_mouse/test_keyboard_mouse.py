"""The tags of the keyboard with a pointer: what is written has every point."""

import pytest

from training.actions.parse_completion import parse_completion
from training.actions.write_completion import format_action
from training.contracts.config import CoordinateSpace, PromptConfig
from training.contracts.types import Action
from training.render.prompts import system_text

SCREEN = (1280, 720)


@pytest.mark.parametrize(
    "action", [Action(kind="click"), Action(kind="drag", to_x=1, to_y=2), Action(kind="move", x=1)]
)
def test_a_point_that_is_not_known_is_refused(action):
    with pytest.raises(ValueError, match="the keyboard-mouse dialect needs every point"):
        format_action(action, "keyboard-mouse")


def test_keys_are_written_as_without_a_pointer():
    action = Action(kind="key", keys=("ctrl", "+"))
    assert format_action(action, "keyboard-mouse") == "<action>sendkey ctrl-plus</action>"


def parse(text: str):
    return parse_completion(text, dialect="keyboard-mouse", space=CoordinateSpace.SCREEN, screen=SCREEN)


@pytest.mark.parametrize(
    ("command", "action"),
    [
        ("click 350 720", Action(kind="click", x=350, y=720)),
        ("click 350, 720", Action(kind="click", x=350, y=720)),
        ("doubleclick 1 2", Action(kind="double_click", x=1, y=2)),
        ("rightclick 1 2", Action(kind="right_click", x=1, y=2)),
        ("move 1.0 2", Action(kind="move", x=1, y=2)),
        ("drag 1 2 3 4", Action(kind="drag", x=1, y=2, to_x=3, to_y=4)),
        ("scroll down 4", Action(kind="scroll", scroll_y=4)),
        ("scroll up", Action(kind="scroll", scroll_y=-3)),
        ("scroll left 2", Action(kind="scroll", scroll_x=-2)),
        ("typeline", Action(kind="type", text="\n")),
        ("type  two  spaces", Action(kind="type", text=" two  spaces")),
    ],
)
def test_the_pointer_verbs_say_an_action(command, action):
    assert parse(f"Thinking. <action>{command}</action>").action == action


@pytest.mark.parametrize(
    ("command", "part"),
    [
        ("click", "write it as click X Y"),
        ("click 1", "write it as click X Y"),
        ("click 1e9 2", "write it as click X Y"),
        ("click __import__('os') 2", "write it as click X Y"),
        ("click 999999 2", "out of range"),
        ("drag 1 2", "write it as drag X Y X Y"),
        ("scroll sideways 2", "up, down, left or right"),
        ("scroll down fast", "write it as scroll"),
        ("exec notepad", "unknown verb 'exec'; use sendkey, type, typeline, wait, click"),
    ],
)
def test_a_pointer_verb_of_another_form_is_an_error_that_says_what_to_write(command, part):
    parsed = parse(f"<action>{command}</action>")
    assert parsed.action is None
    assert part in (parsed.error or "")


def test_several_actions_are_read_in_order():
    text = "<action>sendkey a</action><action>wait 1</action>"
    parsed = parse_completion(text, dialect="keyboard-mouse", screen=SCREEN, most=2)
    assert [action.kind for action in parsed.actions] == ["key", "wait"]


@pytest.mark.parametrize(
    "action",
    [
        Action(kind="click", x=640, y=360),
        Action(kind="double_click", x=0, y=0),
        Action(kind="right_click", x=1279, y=719),
        Action(kind="move", x=3, y=4),
        Action(kind="drag", x=1, y=2, to_x=3, to_y=4),
        Action(kind="scroll", scroll_y=-2),
        Action(kind="key", keys=("ctrl", "-")),
        Action(kind="type", text="dir & echo <b>\n"),
        Action(kind="wait", seconds=1.5),
        Action(kind="terminate", status="success"),
    ],
    ids=lambda action: action.kind.value,
)
def test_what_the_dialect_writes_reads_back_as_the_same_action(action):
    text = format_action(action, "keyboard-mouse", CoordinateSpace.SCREEN, SCREEN)
    assert parse(text).action == action


def test_the_prompt_names_the_pointers_coordinates():
    mouse = system_text(PromptConfig(style="computer-use", dialect="keyboard-mouse"))
    assert "Coordinates are x y, each from 0 to 1000" in mouse
    assert "{" not in mouse
