"""The Windows seed's verbs, with and without a pointer, and prompts that explain what the parser reads."""

import re

import pytest

from training.actions.completion_text import format_action
from training.actions.parse_completion import parse_completion
from training.contracts.config import CoordinateSpace, PromptConfig
from training.contracts.types import Action, ActionKind
from training.render.prompts import system_text

SCREEN = (1280, 720)
EXAMPLE_VALUES = {"[x, y]": "[10, 20]", " x y x y": " 1 2 3 4", " x y": " 1 2"}


def parse(text: str, dialect: str = "keyboard-mouse"):
    return parse_completion(text, dialect=dialect, space=CoordinateSpace.SCREEN, screen=SCREEN)


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("meta_l-r", ("super", "r")),
        ("ctrl-alt-delete", ("ctrl", "alt", "Delete")),
        ("alt-f4", ("alt", "F4")),
        ("spc", ("space",)),
        ("slash", ("/",)),
        ("ctrl-bracket_left", ("ctrl", "[")),
        ("shift-tab", ("shift", "Tab")),
    ],
)
def test_sendkey_knows_the_names_that_qemu_gives_keys(name, keys):
    for dialect in ("keyboard", "keyboard-mouse", "auto"):
        assert parse(f"<action>sendkey {name}</action>", dialect).action == Action(kind="key", keys=keys)


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
        ("sendkey hyper-x", "unknown key"),
        ("wait 3600", "out of range"),
    ],
)
def test_anything_else_is_an_error_that_says_what_to_write(command, part):
    parsed = parse(f"<action>{command}</action>")
    assert parsed.action is None
    assert part in (parsed.error or "")


def test_without_the_option_there_is_no_pointer():
    parsed = parse("<action>click 1 2</action>", "keyboard")
    assert "unknown verb 'click'; use sendkey, type, typeline, wait" in (parsed.error or "")
    with pytest.raises(ValueError, match="no word"):
        format_action(Action(kind="click", x=1, y=2), "keyboard")


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


def test_a_text_that_would_close_its_tag_is_refused_when_written():
    with pytest.raises(ValueError, match="closing tag"):
        format_action(Action(kind=ActionKind.TYPE, text="</action>"), "keyboard")


def examples(prompt: str) -> list[str]:
    """The example actions of a system prompt, with numbers for its placeholders."""
    lines = re.findall(r"^(\{.*?\}|<action>.*?</action>|<done/>)  ", prompt, re.MULTILINE)
    for old, new in EXAMPLE_VALUES.items():
        lines = [line.replace(old, new) for line in lines]
    return [re.sub(r"(: | )([ns])(?=[},<])", r"\g<1>2", line) for line in lines]


@pytest.mark.parametrize("dialect", ["auto", "json", "keyboard", "keyboard-mouse"])
def test_every_example_of_a_prompt_is_read_by_its_parser(dialect):
    prompt = PromptConfig(style="computer-use", dialect=dialect)
    found = examples(system_text(prompt))
    assert len(found) >= 5
    for text in found:
        parsed = parse(text, dialect)
        assert parsed.error is None, f"{text}: {parsed.error}"


def test_the_keyboard_prompt_names_no_pointer_and_the_other_one_its_coordinates():
    keyboard = system_text(PromptConfig(style="computer-use", dialect="keyboard"))
    mouse = system_text(PromptConfig(style="computer-use", dialect="keyboard-mouse"))
    assert "click" not in keyboard
    assert "mouse" not in keyboard
    assert "Coordinates are x y, each from 0 to 1000" in mouse
    assert "{" not in keyboard + mouse


def test_the_short_style_stays_without_a_system_message():
    assert system_text(PromptConfig(style="first-desk", dialect="keyboard")) == ""
