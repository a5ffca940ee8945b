"""Dialect keyboard-mouse: the keyboard dialect with a pointer.

<action>click 350 720</action>  and doubleclick, rightclick, move
<action>drag 100 100 300 300</action>  <action>scroll down 3</action>
"""

import re

from training.actions.errors import ActionTextError
from training.actions.parse.argument_values import Found, Points, notches, scroll
from training.actions.parse.keyboard_tags import VERBS as KEYBOARD_VERBS
from training.actions.parse.keyboard_tags import Verb, parse_tags
from training.actions.pointer_words import TAG_POINTER
from training.contracts.types import Action, ActionKind

DEFAULT_NOTCHES = 3
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def parse(text: str, points: Points) -> Found:
    """The tags in `text`."""
    return parse_tags(text, points, VERBS)


def _numbers(rest: str, count: int, form: str) -> list[float]:
    """`count` numbers, separated by spaces or commas."""
    words = rest.replace(",", " ").split()
    if len(words) != count or not all(_NUMBER.fullmatch(word) for word in words):
        raise ActionTextError(f"write it as {form}")
    return [float(word) for word in words]


def _at(kind: ActionKind, verb: str) -> Verb:
    def build(rest: str, points: Points) -> Action:
        column, row = _numbers(rest, 2, f"{verb} X Y")
        x, y = points.to_screen(column, row)
        return Action(kind=kind, x=x, y=y)

    return build


def _drag(rest: str, points: Points) -> Action:
    left, top, right, bottom = _numbers(rest, 4, "drag X Y X Y")
    x, y = points.to_screen(left, top)
    to_x, to_y = points.to_screen(right, bottom)
    return Action(kind=ActionKind.DRAG, x=x, y=y, to_x=to_x, to_y=to_y)


def _scroll(rest: str, points: Points) -> Action:
    direction, _, amount = rest.strip().partition(" ")
    number = _numbers(amount, 1, "scroll DIRECTION N")[0] if amount.strip() else DEFAULT_NOTCHES
    return scroll(direction, abs(notches(number)))


VERBS: dict[str, Verb] = KEYBOARD_VERBS | {
    **{verb: _at(kind, verb) for kind, verb in TAG_POINTER.items()},
    "drag": _drag,
    "scroll": _scroll,
}
