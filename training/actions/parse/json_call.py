"""Dialect json: a computer_use tool call, wrapped in <tool_call> or bare.

<tool_call>{"name":"computer_use","arguments":{"action":"left_click","coordinate":[350,720]}}</tool_call>
{"action":"key","keys":["ctrl","s"]}
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from training.actions.errors import ActionTextError
from training.actions.key_names import chord, split_chord
from training.actions.parse.argument_values import (
    TEXT_AFTER,
    Found,
    Points,
    notches,
    number,
    scroll,
    seconds,
    typed_text,
)
from training.actions.pointer_words import JSON_POINTER
from training.contracts.types import Action, ActionKind

NAME = "json"
OPEN, CLOSE = "<tool_call>", "</tool_call>"
Arguments = dict[str, Any]


_OBJECT = re.compile(r'\{\s*["}]|<tool_call>')


def start(text: str) -> int | None:
    """Where a call begins; None when there is none."""
    match = _OBJECT.search(text)
    return match.start() if match else None


def parse(text: str, points: Points) -> Found:
    """The calls in `text`, one after another."""
    start = text.find("{")
    if start < 0:
        raise ActionTextError("the tool call holds no JSON object")
    actions, place = [], start
    while True:
        call, end = _object_at(text, place)
        actions.append(action_of(_arguments(call), points))
        place = text.find("{", end)
        between = text[end : place if place >= 0 else len(text)]
        if between.replace(CLOSE, "", 1).replace(OPEN, "", 1).strip():
            raise ActionTextError(TEXT_AFTER)
        if place < 0:
            return Found(tuple(actions), text[:start].replace(OPEN, "").strip())


def _object_at(text: str, place: int) -> tuple[Any, int]:
    """The JSON object that begins there, and where it ends."""
    try:
        return json.JSONDecoder(parse_constant=_refuse_constant).raw_decode(text, place)
    except ActionTextError:
        raise
    except RecursionError as error:
        raise ActionTextError("the JSON is nested too deeply") from error
    except ValueError as error:
        raise ActionTextError(f"the JSON cannot be read: {error}") from error


def _refuse_constant(name: str) -> None:
    raise ActionTextError(f"{name} is not a number")


def _arguments(call: Any) -> Arguments:
    if not isinstance(call, dict):
        raise ActionTextError("the tool call must be a JSON object")
    if "arguments" not in call:
        return call
    if call.get("name", "computer_use") != "computer_use":
        raise ActionTextError(f"unknown tool {str(call['name'])[:40]!r}; the tool is computer_use")
    if not isinstance(call["arguments"], dict):
        raise ActionTextError("arguments must be a JSON object")
    return call["arguments"]


def action_of(arguments: Arguments, points: Points) -> Action:
    """Typed action of tool-call arguments; unknown actions and arguments are refused."""
    name = arguments.get("action")
    if not isinstance(name, str):
        raise ActionTextError('the call has no "action"')
    row = ACTIONS.get(name)
    if row is None:
        raise ActionTextError(f"unknown action {name[:40]!r}")
    build, allowed = row
    unknown = set(arguments) - allowed - {"action"}
    if unknown:
        raise ActionTextError(f"{name} takes no {sorted(unknown)[0][:40]!r}")
    action, parts = build(arguments, points), _newer_parts(arguments)
    return Action.model_validate({**action.model_dump(), **parts}) if parts else action


def _newer_parts(arguments: Arguments) -> dict[str, Any]:
    """How often, with which button, for how long, and with which keys held."""
    parts: dict[str, Any] = {}
    if "modifiers" in arguments:
        parts["modifiers"] = _key_names(arguments["modifiers"], "modifiers")
    if "button" in arguments:
        parts["button"] = arguments["button"]
    if "presses" in arguments:
        parts["presses"] = number(arguments["presses"], "presses")
    if "hold_s" in arguments:
        parts["seconds"] = number(arguments["hold_s"], "hold_s")
    return parts


def _at_point(kind: ActionKind) -> Callable[[Arguments, Points], Action]:
    def build(arguments: Arguments, points: Points) -> Action:
        if "coordinate" not in arguments:
            raise ActionTextError(f"{kind.value} needs a coordinate")
        x, y = points.pair(arguments["coordinate"], "coordinate")
        return Action(kind=kind, x=x, y=y)

    return build


def _drag(arguments: Arguments, points: Points) -> Action:
    """The start is start_coordinate or coordinate, the end is end_coordinate or coordinate."""
    if len(_DRAG & arguments.keys()) == 3:
        raise ActionTextError("left_click_drag takes one start and one end")
    end_key = "end_coordinate" if "end_coordinate" in arguments else "coordinate"
    start_key = "start_coordinate" if "start_coordinate" in arguments else "coordinate"
    if end_key not in arguments:
        raise ActionTextError("left_click_drag needs a coordinate")
    to_x, to_y = points.pair(arguments[end_key], end_key)
    if start_key not in arguments or start_key == end_key:
        return Action(kind=ActionKind.DRAG, to_x=to_x, to_y=to_y)
    x, y = points.pair(arguments[start_key], start_key)
    return Action(kind=ActionKind.DRAG, x=x, y=y, to_x=to_x, to_y=to_y)


def _scroll(arguments: Arguments, points: Points) -> Action:
    """Either direction and amount (default 3 notches), or Qwen's `pixels` (positive is up)."""
    x, y = points.pair(arguments["coordinate"], "coordinate") if "coordinate" in arguments else (None, None)
    if "pixels" in arguments:
        return Action(kind=ActionKind.SCROLL, x=x, y=y, scroll_y=-notches(arguments["pixels"]))
    return scroll(arguments.get("direction"), notches(arguments.get("amount", 3)), x, y)


def _hscroll(arguments: Arguments, points: Points) -> Action:
    x, y = points.pair(arguments["coordinate"], "coordinate") if "coordinate" in arguments else (None, None)
    return Action(kind=ActionKind.SCROLL, x=x, y=y, scroll_x=notches(arguments.get("pixels")))


def _type(arguments: Arguments, points: Points) -> Action:
    return Action(kind=ActionKind.TYPE, text=typed_text(arguments.get("text")))


def _key(arguments: Arguments, points: Points) -> Action:
    return Action(kind=ActionKind.KEY, keys=_key_names(arguments.get("keys", arguments.get("key")), "keys"))


def _key_names(keys: object, what: str) -> tuple[str, ...]:
    if isinstance(keys, str) and keys:
        return split_chord(keys, "+")
    if not isinstance(keys, list):
        raise ActionTextError(f"{what} must be a list of key names")
    return chord(keys)


def _held_keys(kind: ActionKind) -> Callable[[Arguments, Points], Action]:
    def build(arguments: Arguments, points: Points) -> Action:
        return Action(kind=kind, keys=_key_names(arguments.get("keys", arguments.get("key")), "keys"))

    return build


def _held_button(kind: ActionKind) -> Callable[[Arguments, Points], Action]:
    def build(arguments: Arguments, points: Points) -> Action:
        given = "coordinate" in arguments
        x, y = points.pair(arguments["coordinate"], "coordinate") if given else (None, None)
        return Action(kind=kind, x=x, y=y)

    return build


def _paste(arguments: Arguments, points: Points) -> Action:
    return Action(kind=ActionKind.PASTE, text=typed_text(arguments.get("text")))


def _wait(arguments: Arguments, points: Points) -> Action:
    return Action(kind=ActionKind.WAIT, seconds=seconds(arguments.get("time", arguments.get("seconds", 1.0))))


def _terminate(arguments: Arguments, points: Points) -> Action:
    status = arguments.get("status", "success")
    if status not in ("success", "failure"):
        raise ActionTextError("status must be success or failure")
    return Action(kind=ActionKind.TERMINATE, status=status)


def _done(arguments: Arguments, points: Points) -> Action:
    return Action(kind=ActionKind.TERMINATE, status="success")


def _fail(arguments: Arguments, points: Points) -> Action:
    return Action(kind=ActionKind.TERMINATE, status="failure")


def _answer(arguments: Arguments, points: Points) -> Action:
    return Action(kind=ActionKind.TERMINATE, status="success", text=typed_text(arguments.get("text")))


_POINT = frozenset({"coordinate"})
_CLICK = frozenset({"coordinate", "modifiers", "presses"})
_SCROLL = frozenset({"coordinate", "direction", "amount", "pixels", "modifiers"})
_DRAG = frozenset({"coordinate", "start_coordinate", "end_coordinate"})
_KEYS = frozenset({"keys", "key"})
_NOTHING: frozenset[str] = frozenset()
ACTIONS: dict[str, tuple[Callable[[Arguments, Points], Action], frozenset[str]]] = {
    **{
        name: (_at_point(kind), _POINT if kind is ActionKind.MOVE else _CLICK)
        for kind, name in JSON_POINTER.items()
    },
    "click": (_at_point(ActionKind.CLICK), _CLICK),
    "left_click_drag": (_drag, _DRAG | {"modifiers", "button"}),
    "scroll": (_scroll, _SCROLL),
    "hscroll": (_hscroll, _SCROLL),
    "type": (_type, frozenset({"text"})),
    "paste": (_paste, frozenset({"text"})),
    "key": (_key, _KEYS | {"presses", "hold_s"}),
    "hotkey": (_key, _KEYS | {"presses", "hold_s"}),
    **{kind.value: (_held_keys(kind), _KEYS) for kind in (ActionKind.KEY_DOWN, ActionKind.KEY_UP)},
    **{
        kind.value: (_held_button(kind), _POINT | {"button"})
        for kind in (ActionKind.MOUSE_DOWN, ActionKind.MOUSE_UP)
    },
    "wait": (_wait, frozenset({"time", "seconds"})),
    "terminate": (_terminate, frozenset({"status"})),
    "done": (_done, _NOTHING),
    "fail": (_fail, _NOTHING),
    "answer": (_answer, frozenset({"text"})),
}
"""Whitelist: action name -> (builder, allowed arguments)."""
