"""What a policy reads of tree and terminal, and what is cut."""

import pytest

from training.contracts.config import ModelConfig, PromptConfig
from training.observations.turn_text import RawTexts, split_text, turn_text

STATE, PLACE = (
    "https://accessibility.ubuntu.example.org/ns/state",
    "https://accessibility.ubuntu.example.org/ns/component",
)
SCREEN = (512, 384)


def widget(role: str, name: str, box: tuple[int, int, int, int], *states: str, text: str = "") -> str:
    left, top, width, height = box
    message = " ".join(f'st:{state}="true"' for state in ("showing", "visible", *states))
    place = f'cp:screencoord="({left}, {top})" cp:size="({width}, {height})"'
    return f'<{role} name="{name}" {message} {place}>{text}</{role}>'


def tree(*widgets: str) -> str:
    return f'<desktop-frame xmlns:st="{STATE}" xmlns:cp="{PLACE}">{"".join(widgets)}</desktop-frame>'


TREE = tree(
    widget("push-button", "Save", (100, 50, 40, 20), "enabled"),
    widget("entry", "Name", (0, 0, 20, 10), "enabled", "editable", "focused", text="Ada\nLovelace"),
    widget("check-box", "Bold", (0, 0, 2, 2), "checkable", "checked"),
    widget("panel", "no use", (0, 0, 9, 9), "enabled"),
    widget("push-button", "Hidden", (-1, 5, 9, 9), "enabled"),
)


def shown(read: RawTexts, index: int = 0, message: str = "Go.", **prompt: object) -> str:
    return turn_text(message, read, index, PromptConfig.model_validate(prompt), ModelConfig(), SCREEN)


def test_the_short_form_tells_role_name_text_place_and_state() -> None:
    prompt = {"observation": ["accessibility"], "accessibility_form": "short", "coordinate_space": "screen"}
    assert shown(RawTexts(tree=TREE), **prompt) == (
        'Go.\n\n[Accessibility tree]\npush-button "Save" 120,60\nentry "Name" = "Ada Lovelace" 10,5 focused\n'
        'check-box "Bold" 1,1 checked,disabled'
    )


def test_places_are_in_the_numbers_that_the_policy_writes() -> None:
    prompt = {"observation": ["accessibility"], "accessibility_form": "short", "style": "computer-use"}
    assert '"Save" 235,157' in shown(RawTexts(tree=TREE), **prompt)
    assert '"Save" 240,160' in shown(RawTexts(tree=TREE), **(prompt | {"style": "first-desk"}))


@pytest.mark.parametrize(
    ("read", "words"),
    [
        (RawTexts(), "[Accessibility tree]\n(could not be read)\n\n[Terminal]\n(could not be read)"),
        (RawTexts(tree=tree(), terminal="\n"), "[Terminal]\n(no terminal)"),
        (RawTexts(tree="<cut", terminal="a"), "[Accessibility tree]\n(could not be read)\n\n[Terminal]\na"),
    ],
)
def test_what_could_not_be_read_is_said(read: RawTexts, words: str) -> None:
    text = shown(read, observation=["accessibility", "terminal"])
    assert text.startswith("Go.\n\n[Accessibility tree]\n")
    assert text.endswith(words)


def test_each_is_cut_to_its_budget_with_a_notice() -> None:
    many = tree(*(widget("push-button", f"Button {n}", (n, n, 9, 9), "enabled") for n in range(50)))
    prompt = {"observation": ["accessibility", "terminal"], "accessibility_chars": 400, "terminal_chars": 200}
    terminal = "\n".join(f"line {n}" for n in range(100))
    message, rest = split_text(shown(RawTexts(tree=many, terminal=terminal), **prompt))
    listed, _, tail = rest.partition("\n\n[Terminal]\n")
    assert message == "Go."
    assert "Button 0" in listed
    rows = listed.count("Button ")
    assert listed.endswith(f"\n[... {50 - rows} more lines left out]")
    assert len(listed) < 400 + 70
    assert tail.endswith("\nline 99")
    kept = tail.count("\nline ")
    assert tail.startswith(f"[... {100 - kept} earlier lines left out]\n")


def test_every_nth_turn_shows_them() -> None:
    prompt = {"observation": ["screenshot", "terminal"], "observation_every": 3}
    with_terminal = [
        index for index in range(7) if "[Terminal]" in shown(RawTexts(terminal="x"), index, **prompt)
    ]
    assert with_terminal == [0, 3, 6]
    assert shown(RawTexts(terminal="x"), **(prompt | {"observation_every": 0})) == "Go."
    assert shown(RawTexts()) == "Go."


@pytest.mark.parametrize("message", ["", "Go.", "See [Terminal]\nhere\n\nand there", "\n\n"])
def test_what_was_told_is_found_again(message: str) -> None:
    text = shown(RawTexts(terminal="$ ls"), message=message, observation=["terminal"])
    assert split_text(text) == (message, "[Terminal]\n$ ls")
    assert split_text(message) == (message, "")
