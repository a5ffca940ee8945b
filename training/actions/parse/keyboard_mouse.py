"""Dialect keyboard-mouse: the keyboard dialect with a pointer.

<action>click 350 720</action>  and doubleclick, rightclick, move
<action>drag 100 100 300 300</action>  <action>scroll down 3</action>
"""

from __future__ import annotations

import re
from collections.abc import Callable

from training.actions.parse.keyboard import VERBS as KEYBOARD_VERBS
from training.actions.parse.keyboard import Verb, parse_tag, start
from training.actions.parse_result import ActionTextError, Found, Points, notches
from training.contracts.types import Action, ActionKind

__all__ = ["NAME", "parse", "start"]

NAME = "keyboard-mouse"
DEFAULT_NOTCHES = 3
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def parse(text: str, points: Points) -> Found:
    """The one tag in `text`."""
    return parse_tag(text, points, VERBS)


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
    turned = abs(notches(number))
    move: Callable[[], Action] | None = {
        "down": lambda: Action(kind=ActionKind.SCROLL, scroll_y=turned),
        "up": lambda: Action(kind=ActionKind.SCROLL, scroll_y=-turned),
        "right": lambda: Action(kind=ActionKind.SCROLL, scroll_x=turned),
        "left": lambda: Action(kind=ActionKind.SCROLL, scroll_x=-turned),
    }.get(direction)
    if move is None:
        raise ActionTextError("scroll needs up, down, left or right")
    return move()


VERBS: dict[str, Verb] = KEYBOARD_VERBS | {
    "click": _at(ActionKind.CLICK, "click"),
    "doubleclick": _at(ActionKind.DOUBLE_CLICK, "doubleclick"),
    "rightclick": _at(ActionKind.RIGHT_CLICK, "rightclick"),
    "move": _at(ActionKind.MOVE, "move"),
    "drag": _drag,
    "scroll": _scroll,
}
