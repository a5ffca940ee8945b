"""Dialect pyautogui: one call as text, read with `ast`; only literals, only listed names.

pyautogui.click(350, 720)    pyautogui.hotkey("ctrl", "s")    time.sleep(2)

OpenCUA's models write the same in a code block, with three functions of their own: computer.wait(),
computer.tripleClick(x, y) and computer.terminate(status='success').
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from training.actions.errors import ActionTextError
from training.actions.key_names import chord
from training.actions.parse.argument_values import (
    TEXT_AFTER,
    Found,
    Points,
    notches,
    seconds,
    typed_text,
)
from training.actions.pointer_words import PYAUTOGUI_POINTER, SINGLE_BUTTONS
from training.contracts.types import Action, ActionKind

NAME = "pyautogui"
_FENCE = re.compile(r"```(?:python|code)?[ \t]*+\n?(.*?)```", re.DOTALL)
"""Blanks are taken once: tried at each of their lengths they take the square of it."""
_START = re.compile(r"^(?:import pyautogui|import time|pyautogui\.|time\.sleep|computer\.)", re.MULTILINE)
_IMPORTABLE = {"pyautogui", "time"}
OPENCUA_WAIT_S = 3.0
Values = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Row:
    """One allowed function."""

    build: Callable[[Values, Points], Action]
    parameters: tuple[str, ...]
    """Positional order; keywords must be among them."""
    ignored: frozenset[str] = frozenset({"duration", "interval", "tween", "pause", "logScreenshot", "_pause"})


def start(text: str) -> int | None:
    """Where the code begins; None when no line starts with one of its modules."""
    match = _START.search(text)
    return match.start() if match else None


def parse(text: str, points: Points) -> Found:
    """The calls in `text`, one after another."""
    code, thought = _code_and_thought(text)
    try:
        module = ast.parse(code.strip())
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ActionTextError(f"the code cannot be read: {type(error).__name__}") from error
    calls = [node for node in module.body if not _is_import(node)]
    if not calls:
        raise ActionTextError("the code holds no call")
    return Found(tuple(_action(call, points) for call in calls), thought)


def _code_and_thought(text: str) -> tuple[str, str]:
    fence = _FENCE.search(text)
    if fence and _START.search(fence[1]):
        if text[fence.end() :].strip():
            raise ActionTextError(TEXT_AFTER)
        return fence[1], text[: fence.start()].strip()
    begin = start(text) or 0
    return text[begin:], text[:begin].strip()


def _is_import(node: ast.stmt) -> bool:
    return isinstance(node, ast.Import) and all(
        name.name in _IMPORTABLE and not name.asname for name in node.names
    )


def _action(node: ast.stmt, points: Points) -> Action:
    if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Call):
        raise ActionTextError("only a single call is allowed")
    call = node.value
    if not isinstance(call.func, ast.Attribute) or not isinstance(call.func.value, ast.Name):
        raise ActionTextError("only pyautogui.NAME(...) is allowed")
    name = f"{call.func.value.id}.{call.func.attr}"
    row = FUNCTIONS.get(name)
    if row is None:
        raise ActionTextError(f"{name[:40]} is not allowed")
    return row.build(_values(name, row, call), points)


def _values(name: str, row: Row, call: ast.Call) -> Values:
    if row.parameters == ("*",):
        if call.keywords and any(word.arg not in row.ignored for word in call.keywords):
            raise ActionTextError(f"{name} takes no such keyword")
        found = [_literal(node) for node in call.args]
        return {"*": found[0] if len(found) == 1 and isinstance(found[0], list) else found}
    if len(call.args) > len(row.parameters):
        raise ActionTextError(f"{name} takes at most {len(row.parameters)} arguments")
    values = {key: _literal(node) for key, node in zip(row.parameters, call.args, strict=False)}
    for word in call.keywords:
        if word.arg in row.ignored:
            continue
        if word.arg not in row.parameters or word.arg in values:
            raise ActionTextError(f"{name} takes no {str(word.arg)[:40]!r}")
        values[str(word.arg)] = _literal(word.value)
    return values


def _literal(node: ast.expr) -> Any:
    """A number, a string, or a flat list of them; anything else is refused unread."""
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float, str)):
        return node.value
    if (
        isinstance(node, ast.UnaryOp)
        and isinstance(node.op, ast.USub)
        and isinstance(node.operand, ast.Constant)
    ):
        value = node.operand.value
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return -value
    if isinstance(node, (ast.List, ast.Tuple)) and all(isinstance(item, ast.Constant) for item in node.elts):
        return [_literal(item) for item in node.elts]
    raise ActionTextError("arguments must be literal numbers, strings or lists of them")


def _point(values: Values, points: Points) -> tuple[int, int] | tuple[None, None]:
    """Screen pixels of x and y (or x=[x, y]); (None, None) is where the pointer is."""
    x, y = values.get("x"), values.get("y")
    if x is None and y is None:
        return None, None
    if isinstance(x, list) and y is None:
        return points.pair(x, "x")
    if x is None or y is None:
        raise ActionTextError("x and y are needed together")
    return points.to_screen(x, y)


def _clicks(kind: ActionKind) -> Callable[[Values, Points], Action]:
    def build(values: Values, points: Points) -> Action:
        x, y = _point(values, points)
        return Action(kind=kind, x=x, y=y)

    return build


def _click(values: Values, points: Points) -> Action:
    kinds = {
        (1, "left"): ActionKind.CLICK,
        (2, "left"): ActionKind.DOUBLE_CLICK,
        (3, "left"): ActionKind.TRIPLE_CLICK,
        (1, "right"): ActionKind.RIGHT_CLICK,
        (1, "middle"): ActionKind.MIDDLE_CLICK,
    }
    clicks, button = values.get("clicks", 1), values.get("button", "left")
    x, y = _point(values, points)
    if isinstance(clicks, int) and isinstance(button, str) and button in _SINGLE:
        kind = kinds.get((clicks, button))
        return Action(kind=kind, x=x, y=y) if kind else Action(kind=_SINGLE[button], x=x, y=y, presses=clicks)
    raise ActionTextError("clicks must be a number and button left, right or middle")


def _drag(values: Values, points: Points) -> Action:
    x, y = _point(values, points)
    if x is None:
        raise ActionTextError("dragTo needs x and y")
    return Action(kind=ActionKind.DRAG, to_x=x, to_y=y, button=values.get("button", "left"))


def _write(values: Values, points: Points) -> Action:
    return Action(kind=ActionKind.TYPE, text=typed_text(values.get("message")))


def _press(values: Values, points: Points) -> Action:
    keys = values.get("keys")
    if isinstance(keys, list) and len(keys) == 1:
        keys = keys[0]
    if not isinstance(keys, str):
        raise ActionTextError("press takes one key; write a call for each")
    return Action(kind=ActionKind.KEY, keys=chord([keys]), presses=values.get("presses", 1))


def _held_key(kind: ActionKind) -> Callable[[Values, Points], Action]:
    def build(values: Values, points: Points) -> Action:
        return Action(kind=kind, keys=chord([values.get("key")]))

    return build


def _held_button(kind: ActionKind) -> Callable[[Values, Points], Action]:
    def build(values: Values, points: Points) -> Action:
        x, y = _point(values, points)
        return Action(kind=kind, x=x, y=y, button=values.get("button", "left"))

    return build


def _hotkey(values: Values, points: Points) -> Action:
    return Action(kind=ActionKind.KEY, keys=chord(values["*"]))


def _scroll(values: Values, points: Points) -> Action:
    """pyautogui counts up as positive."""
    x, y = _point(values, points)
    return Action(kind=ActionKind.SCROLL, x=x, y=y, scroll_y=-notches(values.get("clicks")))


def _hscroll(values: Values, points: Points) -> Action:
    x, y = _point(values, points)
    return Action(kind=ActionKind.SCROLL, x=x, y=y, scroll_x=notches(values.get("clicks")))


def _sleep(values: Values, points: Points) -> Action:
    return Action(kind=ActionKind.WAIT, seconds=seconds(values.get("secs")))


def _wait(values: Values, points: Points) -> Action:
    return Action(kind=ActionKind.WAIT, seconds=seconds(values.get("seconds", OPENCUA_WAIT_S)))


def _terminate(values: Values, points: Points) -> Action:
    status = values.get("status", "success")
    if status not in ("success", "failure"):
        raise ActionTextError("status must be success or failure")
    answer = values.get("answer")
    return Action(
        kind=ActionKind.TERMINATE, status=status, text=typed_text(answer) if answer is not None else None
    )


_SINGLE = {button: kind for kind, button in SINGLE_BUTTONS.items()}
_BUTTONS = (ActionKind.MOUSE_DOWN, ActionKind.MOUSE_UP)
_XY = ("x", "y")
_SCROLL = ("clicks", "x", "y")
FUNCTIONS: dict[str, Row] = {
    **{f"pyautogui.{name}": Row(_clicks(kind), _XY) for kind, name in PYAUTOGUI_POINTER.items()},
    "pyautogui.click": Row(
        _click,
        ("x", "y", "clicks", "interval", "button"),
        frozenset({"duration", "tween", "logScreenshot", "_pause"}),
    ),
    "pyautogui.leftClick": Row(_clicks(ActionKind.CLICK), _XY),
    "pyautogui.dragTo": Row(
        _drag,
        ("x", "y", "duration", "tween", "button"),
        frozenset({"mouseDownUp", "_pause", "logScreenshot"}),
    ),
    "pyautogui.write": Row(_write, ("message",)),
    "pyautogui.typewrite": Row(_write, ("message",)),
    "pyautogui.press": Row(_press, ("keys", "presses")),
    "pyautogui.keyDown": Row(_held_key(ActionKind.KEY_DOWN), ("key",)),
    "pyautogui.keyUp": Row(_held_key(ActionKind.KEY_UP), ("key",)),
    **{
        f"pyautogui.{PYAUTOGUI_POINTER[kind]}": Row(_held_button(kind), ("x", "y", "button"))
        for kind in _BUTTONS
    },
    "pyautogui.hotkey": Row(_hotkey, ("*",)),
    "pyautogui.scroll": Row(_scroll, _SCROLL),
    "pyautogui.vscroll": Row(_scroll, _SCROLL),
    "pyautogui.hscroll": Row(_hscroll, _SCROLL),
    "computer.wait": Row(_wait, ("seconds",), frozenset()),
    "computer.tripleClick": Row(_clicks(ActionKind.TRIPLE_CLICK), _XY),
    "computer.terminate": Row(_terminate, ("status", "answer"), frozenset()),
    "time.sleep": Row(_sleep, ("secs",), frozenset()),
}
"""Whitelist of functions."""
