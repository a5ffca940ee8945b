"""Dialect ui-tars: UI-TARS' action text, one call after "Action:", read with `ast`; only literals.

Thought: ...
Action: click(start_box='(512,340)')        click(point='<point>512 340</point>')
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from typing import Any

from training.actions.errors import ActionTextError
from training.actions.key_names import chord, split_chord
from training.actions.parse.argument_values import (
    Found,
    Points,
    number,
    scroll,
    seconds,
    typed_text,
)
from training.actions.pointer_words import UI_TARS_POINTER
from training.contracts.types import Action, ActionKind

NAME = "ui-tars"
SCROLL_NOTCHES = 5
"""The text names no amount; OSWorld's agent of this model turns the wheel so far."""
WAIT_S = 5.0
"""Likewise of wait()."""
_START = re.compile(r"^[^\S\n]*Action:", re.MULTILINE)
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
Arguments = dict[str, str]


def start(text: str) -> int | None:
    """Where "Action:" begins a line; None when none does."""
    match = _START.search(text)
    return match.start() if match else None


def parse(text: str, points: Points) -> Found:
    """The calls after "Action:"."""
    thought, _, code = text.partition("Action:")
    try:
        module = ast.parse(code.strip())
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ActionTextError(f"the action cannot be read: {type(error).__name__}") from error
    if not module.body:
        raise ActionTextError("the action holds no call")
    actions = tuple(_action(node, points) for node in module.body)
    return Found(actions, thought.strip().removeprefix("Thought:").strip())


def _action(node: ast.stmt, points: Points) -> Action:
    name, arguments = _call(node)
    row = ACTIONS.get(name)
    if row is None:
        raise ActionTextError(f"unknown action {name[:40]!r}")
    build, allowed = row
    if unknown := set(arguments) - allowed:
        raise ActionTextError(f"{name} takes no {min(unknown)[:40]!r}")
    return build(arguments, points)


def _call(node: ast.stmt) -> tuple[str, Arguments]:
    call = node.value if isinstance(node, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.args:
        raise ActionTextError("the action must be one call with named arguments")
    arguments: Arguments = {}
    for word in call.keywords:
        value: Any = word.value.value if isinstance(word.value, ast.Constant) else None
        if word.arg is None or not isinstance(value, str):
            raise ActionTextError("arguments must be texts in quotes")
        arguments[word.arg] = value
    return call.func.id, arguments


def _point(arguments: Arguments, points: Points, *names: str) -> tuple[int, int]:
    """The middle of a box or point of this name; boxes have two corners."""
    name = next((name for name in names if name in arguments), None)
    if name is None:
        raise ActionTextError(f"{names[0]} is missing")
    found = [float(text) for text in _NUMBER.findall(arguments[name])]
    if len(found) not in (2, 4):
        raise ActionTextError(f"{name} must hold a point or a box")
    x, y = found[0] + found[-2], found[1] + found[-1]
    return points.to_screen(number(x / 2, name), number(y / 2, name), name)


def _at_point(kind: ActionKind) -> Callable[[Arguments, Points], Action]:
    def build(arguments: Arguments, points: Points) -> Action:
        x, y = _point(arguments, points, "start_box", "point")
        return Action(kind=kind, x=x, y=y)

    return build


def _drag(arguments: Arguments, points: Points) -> Action:
    x, y = _point(arguments, points, "start_box", "start_point")
    to_x, to_y = _point(arguments, points, "end_box", "end_point")
    return Action(kind=ActionKind.DRAG, x=x, y=y, to_x=to_x, to_y=to_y)


def _scroll(arguments: Arguments, points: Points) -> Action:
    x, y = (None, None)
    if _PLACE & arguments.keys():
        x, y = _point(arguments, points, "start_box", "point")
    return scroll(arguments.get("direction"), SCROLL_NOTCHES, x, y)


def _hotkey(arguments: Arguments, points: Points) -> Action:
    keys = arguments.get("key", arguments.get("hotkey", ""))
    names = [name for part in keys.split() for name in split_chord(part, "+")]
    return Action(kind=ActionKind.KEY, keys=chord(names))


def _type(arguments: Arguments, points: Points) -> Action:
    return Action(kind=ActionKind.TYPE, text=typed_text(arguments.get("content")))


def _wait(arguments: Arguments, points: Points) -> Action:
    return Action(kind=ActionKind.WAIT, seconds=seconds(WAIT_S))


def _finished(arguments: Arguments, points: Points) -> Action:
    content = arguments.get("content")
    text = typed_text(content) if content else None
    return Action(kind=ActionKind.TERMINATE, status="success", text=text)


def _call_user(arguments: Arguments, points: Points) -> Action:
    return Action(kind=ActionKind.TERMINATE, status="failure")


_PLACE = frozenset({"start_box", "point"})
_KEYS = frozenset({"key", "hotkey"})
_NOTHING: frozenset[str] = frozenset()
ACTIONS: dict[str, tuple[Callable[[Arguments, Points], Action], frozenset[str]]] = {
    **{name: (_at_point(kind), _PLACE) for kind, name in UI_TARS_POINTER.items()},
    "drag": (_drag, frozenset({"start_box", "end_box", "start_point", "end_point"})),
    "scroll": (_scroll, _PLACE | {"direction"}),
    "hotkey": (_hotkey, _KEYS),
    "press": (_hotkey, _KEYS),
    "type": (_type, frozenset({"content"})),
    "wait": (_wait, _NOTHING),
    "finished": (_finished, frozenset({"content"})),
    "call_user": (_call_user, frozenset({"content"})),
}
"""Whitelist: action name -> (builder, allowed arguments)."""
