"""The whitelist of functions that code may call, and the actions that each means."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from training.actions.errors import ActionTextError
from training.actions.key_names import chord
from training.actions.parse.argument_values import (
    Mark,
    Points,
    button_of,
    count,
    notches,
    seconds,
    status_of,
    typed_text,
)
from training.actions.pointer_words import PYAUTOGUI_POINTER
from training.contracts.action import CLICKS, MAX_PRESSES, Action, ActionKind

OPENCUA_WAIT_S = 3.0
K = ActionKind
Values = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Copied:
    """A text in the clipboard, which the next call pastes."""

    text: str


Build = Callable[[Values, Points], tuple[Action | Copied, ...]]


@dataclass(frozen=True, slots=True)
class Row:
    """One allowed function."""

    build: Build
    parameters: tuple[str, ...]
    """Positional order; keywords must be among them."""
    ignored: frozenset[str] = frozenset({"duration", "interval", "tween", "pause", "logScreenshot", "_pause"})


def _point(values: Values, points: Points) -> tuple[int, int] | tuple[None, None]:
    """Screen pixels of x and y (or x=[x, y]); (None, None) is where the pointer is."""
    x, y = values.get("x"), values.get("y")
    if x is None and y is None:
        return None, None
    if isinstance(x, (list, Mark)) and y is None:
        return points.pair(x, "x")
    if x is None or y is None:
        raise ActionTextError("x and y are needed together")
    return points.to_screen(x, y)


def _clicks(kind: ActionKind) -> Build:
    def build(values: Values, points: Points) -> tuple[Action, ...]:
        x, y = _point(values, points)
        if kind is not K.MOVE and button_of(values) != "left":
            raise ActionTextError("only click takes another button")
        return (Action(kind=kind, x=x, y=y),)

    return build


def _click(values: Values, points: Points) -> tuple[Action, ...]:
    """Two or three clicks of the left button are a kind of their own; other numbers are counted."""
    kinds = {"left": K.CLICK, "right": K.RIGHT_CLICK, "middle": K.MIDDLE_CLICK}
    times = count(values.get("clicks", 1), "clicks", MAX_PRESSES)
    kind = kinds[button_of(values)]
    if kind is K.CLICK and times in (2, 3):
        kind, times = (K.DOUBLE_CLICK, K.TRIPLE_CLICK)[times - 2], 1
    x, y = _point(values, points)
    return (Action(kind=kind, x=x, y=y, presses=times),)


def _drag(values: Values, points: Points) -> tuple[Action, ...]:
    x, y = _point(values, points)
    if x is None:
        raise ActionTextError("dragTo needs x and y")
    return (Action(kind=K.DRAG, to_x=x, to_y=y, button=button_of(values)),)


def _button(kind: ActionKind) -> Build:
    def build(values: Values, points: Points) -> tuple[Action, ...]:
        x, y = _point(values, points)
        return (Action(kind=kind, x=x, y=y, button=button_of(values)),)

    return build


def _write(values: Values, points: Points) -> tuple[Action, ...]:
    message = values.get("message")
    if isinstance(message, list):  # names of keys, one after another
        return tuple(Action(kind=K.KEY, keys=chord([name])) for name in message)
    return (Action(kind=K.TYPE, text=typed_text(message)),)


def _copy(values: Values, points: Points) -> tuple[Copied, ...]:
    return (Copied(typed_text(values.get("text"))),)


def _press(values: Values, points: Points) -> tuple[Action, ...]:
    """Keys in a list are pressed one after another, and all of them as often as `presses` says."""
    keys = values.get("keys")
    names = keys if isinstance(keys, list) else [keys]
    times = count(values.get("presses", 1), "presses", MAX_PRESSES)
    if not names or not all(isinstance(name, str) for name in names):
        raise ActionTextError("press takes a key or a list of keys")
    if len(names) == 1:
        return (Action(kind=K.KEY, keys=chord(names), presses=times),)
    return tuple(Action(kind=K.KEY, keys=chord([name])) for _ in range(times) for name in names)


def _half(kind: ActionKind) -> Build:
    return lambda values, points: (Action(kind=kind, keys=chord([values.get("key")])),)


def _hotkey(values: Values, points: Points) -> tuple[Action, ...]:
    return (Action(kind=K.KEY, keys=chord(values["*"])),)


def _scroll(values: Values, points: Points) -> tuple[Action, ...]:
    """pyautogui counts up as positive."""
    x, y = _point(values, points)
    return (Action(kind=K.SCROLL, x=x, y=y, scroll_y=-notches(values.get("clicks"))),)


def _hscroll(values: Values, points: Points) -> tuple[Action, ...]:
    x, y = _point(values, points)
    return (Action(kind=K.SCROLL, x=x, y=y, scroll_x=notches(values.get("clicks"))),)


def _sleep(values: Values, points: Points) -> tuple[Action, ...]:
    return (Action(kind=K.WAIT, seconds=seconds(values.get("secs"))),)


def _wait(values: Values, points: Points) -> tuple[Action, ...]:
    return (Action(kind=K.WAIT, seconds=seconds(values.get("seconds", OPENCUA_WAIT_S))),)


def _terminate(values: Values, points: Points) -> tuple[Action, ...]:
    answer = values.get("answer")
    text = typed_text(answer) if answer is not None else None
    return (Action(kind=K.TERMINATE, status=status_of(values.get("status", "success")), text=text),)


_XY = ("x", "y")
_SCROLL = ("clicks", "x", "y")
_CLICK_ROW = Row(
    _click,
    ("x", "y", "clicks", "interval", "button"),
    frozenset({"duration", "tween", "logScreenshot", "_pause", "pause"}),
)
_SLEEP_ROW = Row(_sleep, ("secs",), frozenset())
_TRIPLE = Row(_clicks(K.TRIPLE_CLICK), (*_XY, "interval", "button"))
FUNCTIONS: dict[str, Row] = {
    **{
        f"pyautogui.{name}": Row(_clicks(kind), (*_XY, "interval", "button"))
        for kind, name in PYAUTOGUI_POINTER.items()
        if kind in CLICKS
    },
    "pyautogui.moveTo": Row(_clicks(K.MOVE), (*_XY, "duration", "tween")),
    "pyautogui.click": _CLICK_ROW,
    "pyautogui.leftClick": Row(_clicks(K.CLICK), _XY),
    "pyautogui.dragTo": Row(
        _drag,
        ("x", "y", "duration", "tween", "button"),
        frozenset({"mouseDownUp", "_pause", "logScreenshot"}),
    ),
    "pyautogui.mouseDown": Row(_button(K.MOUSE_DOWN), (*_XY, "button")),
    "pyautogui.mouseUp": Row(_button(K.MOUSE_UP), (*_XY, "button")),
    "pyautogui.write": Row(_write, ("message",)),
    "pyautogui.typewrite": Row(_write, ("message",)),
    "pyautogui.press": Row(_press, ("keys", "presses")),
    "pyautogui.keyDown": Row(_half(K.KEY_DOWN), ("key",)),
    "pyautogui.keyUp": Row(_half(K.KEY_UP), ("key",)),
    "pyautogui.hotkey": Row(_hotkey, ("*",)),
    "pyautogui.scroll": Row(_scroll, _SCROLL),
    "pyautogui.vscroll": Row(_scroll, _SCROLL),
    "pyautogui.hscroll": Row(_hscroll, _SCROLL),
    "pyautogui.sleep": _SLEEP_ROW,
    "pyperclip.copy": Row(_copy, ("text",), frozenset()),
    "computer.wait": Row(_wait, ("seconds",), frozenset()),
    "computer.tripleClick": _TRIPLE,
    "computer.triple_click": _TRIPLE,
    "computer.terminate": Row(_terminate, ("status", "answer"), frozenset()),
    "time.sleep": _SLEEP_ROW,
}
"""Whitelist of functions."""
