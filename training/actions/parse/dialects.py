"""Picks the dialect whose action begins first; a completion that none can read is a visible error."""

from __future__ import annotations

from types import ModuleType

from pydantic import ValidationError

from training.actions.coordinates import Size, space_size
from training.actions.errors import ActionTextError
from training.actions.parse import (
    control_words,
    json_call,
    keyboard_mouse,
    keyboard_tags,
    pyautogui_call,
    ui_tars,
)
from training.actions.parse.argument_values import Points
from training.contracts.config import CoordinateSpace
from training.contracts.types import Action, ActionKind, ParsedCompletion

MAX_COMPLETION_CHARACTERS = 40_000
"""Longer completions are refused unread: no dialect needs them and parsers cost time."""
_END_MARKS = ("<|im_end|>", "<|endoftext|>", "<|eot_id|>", "</s>")
"""What engines leave at the end of a completion; elsewhere it is text that the agent types."""

DIALECTS: dict[str, tuple[ModuleType, ...]] = {
    "auto": (control_words, keyboard_mouse, pyautogui_call, json_call),
    "json": (json_call,),
    "tool-call": (json_call,),
    "ui-tars": (ui_tars,),
    "pyautogui": (control_words, pyautogui_call),
    "keyboard": (keyboard_tags,),
    "keyboard-mouse": (keyboard_mouse,),
}
"""Setting -> dialects; the one whose action begins first in the text decides."""


def parse_completion(
    text: str,
    *,
    dialect: str = "auto",
    space: CoordinateSpace = CoordinateSpace.PERMILLE,
    screen: Size,
    image: Size | None = None,
    most: int = 1,
) -> ParsedCompletion:
    """The actions that `text` says, or why it says none. Never raises for any text.

    `screen` is the desktop's size in pixels, `image` the resized image's (resized space only), `most` how
    many actions may stand in it (`prompt.actions_per_turn`).
    """
    points = Points(space_size(space, screen, image), screen)
    text = _without_end_marks(text).lstrip()
    if not text:
        return ParsedCompletion(error="the completion is empty")
    if len(text) > MAX_COMPLETION_CHARACTERS:
        return ParsedCompletion(error=f"the completion is longer than {MAX_COMPLETION_CHARACTERS} characters")
    begins = [(begin, module) for module in DIALECTS[dialect] if (begin := module.start(text)) is not None]
    if not begins:
        return ParsedCompletion(error=f"no action in a known form ({dialect})")
    _, module = min(begins, key=lambda item: item[0])
    try:
        found = module.parse(text, points)
    except ActionTextError as error:
        return ParsedCompletion(error=str(error), dialect=module.NAME)
    except ValidationError as error:
        return ParsedCompletion(error=_first_mistake(error), dialect=module.NAME)
    if mistake := _order_mistake(found.actions, most):
        return ParsedCompletion(error=mistake, dialect=module.NAME)
    return ParsedCompletion(actions=found.actions, dialect=module.NAME, thought=_printable(found.thought))


def _first_mistake(error: ValidationError) -> str:
    """What the contract of actions does not allow, with the field's name."""
    found = error.errors()[0]
    words = found["msg"].removeprefix("Value error, ")
    return ": ".join([*map(str, found["loc"]), words])


def _order_mistake(actions: tuple[Action, ...], most: int) -> str | None:
    """Why these may not stand in one completion; None when they may."""
    if len(actions) > most:
        return f"more than one action: {len(actions)}, where prompt.actions_per_turn allows {most}"
    if any(action.kind is ActionKind.TERMINATE for action in actions[:-1]):
        return "actions after the one that ends the episode"
    return None


def _without_end_marks(text: str) -> str:
    """`text` without the marks and blanks at its end. No pattern: one takes the square of the blanks."""
    end = len(text)
    while True:
        while end and text[end - 1].isspace():
            end -= 1
        mark = next((mark for mark in _END_MARKS if text.endswith(mark, 0, end)), None)
        if mark is None:
            return text[:end]
        end -= len(mark)


def _printable(text: str) -> str:
    """Lone surrogates, which no encoding holds, as question marks."""
    return text.encode("utf-8", "replace").decode()
