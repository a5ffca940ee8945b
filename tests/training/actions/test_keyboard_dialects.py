"""The Windows seed's verbs, and prompts that explain what the parser reads."""

import re

import pytest

from training.actions.dialects.registry import DIALECTS
from training.actions.parse_completion import parse_completion
from training.actions.write_completion import format_action
from training.contracts.config import CoordinateSpace, PromptConfig
from training.contracts.types import Action, ActionKind
from training.render.prompts import system_text

SCREEN = (1280, 720)
KEYBOARDS = [row.name for row in DIALECTS if row.name.startswith("keyboard")]
EXAMPLE_VALUES = {"[x, y]": "[10, 20]", " x y x y": " 1 2 3 4", " x y": " 1 2"}


def parse(text: str, dialect: str = "keyboard"):
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
    for dialect in ("keyboard", "auto"):
        assert parse(f"<action>sendkey {name}</action>", dialect).action == Action(kind="key", keys=keys)


@pytest.mark.parametrize(
    ("command", "part"),
    [
        ("exec notepad", "unknown verb 'exec'; use sendkey, type, typeline, wait"),
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


def test_a_text_that_would_close_its_tag_is_refused_when_written():
    with pytest.raises(ValueError, match="closing tag"):
        format_action(Action(kind=ActionKind.TYPE, text="</action>"), "keyboard")


def examples(prompt: str) -> list[str]:
    """The example actions of a system prompt, with numbers for its placeholders."""
    lines = re.findall(r"^(\{.*?\}|<action>.*?</action>|<done/>)  ", prompt, re.MULTILINE)
    for old, new in EXAMPLE_VALUES.items():
        lines = [line.replace(old, new) for line in lines]
    return [re.sub(r"(: | )([ns])(?=[},<])", r"\g<1>2", line) for line in lines]


@pytest.mark.parametrize("dialect", ["auto", "json", *KEYBOARDS])
def test_every_example_of_a_prompt_is_read_by_its_parser(dialect):
    prompt = PromptConfig(style="computer-use", dialect=dialect)
    found = examples(system_text(prompt))
    assert len(found) >= 5
    for text in found:
        parsed = parse(text, dialect)
        assert parsed.error is None, f"{text}: {parsed.error}"


def test_the_keyboard_prompt_names_no_pointer():
    keyboard = system_text(PromptConfig(style="computer-use", dialect="keyboard"))
    assert "click" not in keyboard
    assert "mouse" not in keyboard
    assert "{" not in keyboard


def test_the_short_style_stays_without_a_system_message():
    assert system_text(PromptConfig(style="first-desk", dialect="keyboard")) == ""
