"""Dialect openai: {"type": "click", "x": 5, "y": 6, "button": "left"}, also within a computer_call.

A unit of scroll_x and scroll_y is a notch, as OSWorld's agent has it; more than a page is cut.
"""

import json
from collections.abc import Callable
from typing import Any

from training.actions.dialects.contract import Dialect
from training.actions.errors import ActionTextError
from training.actions.key_names import MODIFIERS, key_list
from training.actions.parse.argument_values import Found, Points, Start, listed, notches, seconds, typed_text
from training.actions.parse.call_blocks import Arguments, call_start, calls_in
from training.actions.parse.thoughts import words_around
from training.actions.write.json_call import WritePoint
from training.actions.write.unsaid_parts import require_words
from training.contracts.config import CoordinateSpace
from training.contracts.types import Action, ActionKind

K = ActionKind
WAIT_S = 1.0
CLICKS = {"left": K.CLICK, "right": K.RIGHT_CLICK, "wheel": K.MIDDLE_CLICK, "middle": K.MIDDLE_CLICK}
BUTTONS = {K.CLICK: "left", K.RIGHT_CLICK: "right", K.MIDDLE_CLICK: "wheel"}
Build = Callable[[Arguments, Points], tuple[Action, ...]]
PROMPT = """You operate a desktop computer. Every message shows you the current screen.
Answer with one action as a JSON object:
{{"type": "click", "x": ..., "y": ..., "button": "left"}}  also right and wheel; "keys": ["CTRL"] are held
{{"type": "double_click", "x": ..., "y": ...}}, {{"type": "move", "x": ..., "y": ...}}
{{"type": "drag", "path": [{{"x": ..., "y": ...}}, {{"x": ..., "y": ...}}]}}
{{"type": "scroll", "x": ..., "y": ..., "scroll_x": 0, "scroll_y": 3}}  positive is down and right
{{"type": "type", "text": "..."}}, {{"type": "keypress", "keys": ["CTRL", "S"]}}, {{"type": "wait"}}

{coordinates}"""


def is_call(value: Any) -> bool:
    """Whether a JSON value is an action of the tool, or holds some."""
    return any(_is_known(one) for one in actions_in(value))


def _is_known(value: Arguments) -> bool:
    return isinstance(value.get("type"), str) and value["type"] in TYPES


def actions_in(value: Any) -> list[Arguments]:
    """The actions of a JSON value: one, a computer_call, or a list of them."""
    if isinstance(value, list):
        return [found for one in value for found in actions_in(one)]
    if not isinstance(value, dict):
        return []
    inner = next((value[key] for key in ("output", "actions") if isinstance(value.get(key), list)), None)
    if inner is None and value.get("type") == "computer_call":
        inner = value.get("action")
    return [value] if inner is None else actions_in(inner)


def start(text: str) -> Start | None:
    """Where an action begins; None when there is none."""
    return call_start(text, is_call)


def parse(text: str, points: Points) -> Found:
    """The actions in `text`, in order; items of an output that do nothing are left out."""
    calls = calls_in(text, is_call)
    found = [one for call in calls for one in actions_in(call.value) if _is_known(one)]
    actions = tuple(action for one in found for action in TYPES[one["type"]](one, points))
    return Found(actions, words_around(text, calls[0].start, calls[-1].end))


def _point(call: Arguments, points: Points) -> tuple[int, int] | tuple[None, None]:
    if call.get("x") is None and call.get("y") is None:
        return None, None
    return points.to_screen(call.get("x"), call.get("y"))


def _held(call: Arguments) -> tuple[str, ...]:
    keys = key_list(listed(call["keys"])) if call.get("keys") else ()
    if other := [key for key in keys if key not in MODIFIERS]:
        raise ActionTextError(f"{call['type']} holds modifiers only, and {other[0]!r} is none")
    return keys


def _click(call: Arguments, points: Points) -> tuple[Action, ...]:
    x, y = _point(call, points)
    kind = CLICKS.get(str(call.get("button") or "left"))
    if kind is None:
        raise ActionTextError("button must be left, right or wheel")
    return (Action(kind=kind, x=x, y=y, modifiers=_held(call)),)


def _double_click(call: Arguments, points: Points) -> tuple[Action, ...]:
    x, y = _point(call, points)
    return (Action(kind=K.DOUBLE_CLICK, x=x, y=y, modifiers=_held(call)),)


def _move(call: Arguments, points: Points) -> tuple[Action, ...]:
    x, y = points.to_screen(call.get("x"), call.get("y"))
    return (Action(kind=K.MOVE, x=x, y=y),)


def _drag(call: Arguments, points: Points) -> tuple[Action, ...]:
    """Two points are one drag; a longer path is a button that is held from point to point."""
    path = call.get("path")
    if not isinstance(path, list) or len(path) < 2:
        raise ActionTextError("path must hold two points or more")
    (x, y), *between, (to_x, to_y) = [points.pair(one, "path") for one in path]
    held = _held(call)
    if not between:
        return (Action(kind=K.DRAG, x=x, y=y, to_x=to_x, to_y=to_y, modifiers=held),)
    if held:
        raise ActionTextError("a path of more than two points holds no keys")
    moves = [Action(kind=K.MOVE, x=across, y=down) for across, down in [*between, (to_x, to_y)]]
    return (Action(kind=K.MOUSE_DOWN, x=x, y=y), *moves, Action(kind=K.MOUSE_UP))


def _scroll(call: Arguments, points: Points) -> tuple[Action, ...]:
    x, y = _point(call, points)
    across, down = (notches(call.get(key) or 0) for key in ("scroll_x", "scroll_y"))
    return (Action(kind=K.SCROLL, x=x, y=y, scroll_x=across, scroll_y=down, modifiers=_held(call)),)


def _type(call: Arguments, points: Points) -> tuple[Action, ...]:
    return (Action(kind=K.TYPE, text=typed_text(call.get("text"))),)


def _keypress(call: Arguments, points: Points) -> tuple[Action, ...]:
    keys = listed(call.get("keys"))
    if not isinstance(keys, (str, list)) or not keys:
        raise ActionTextError("keys must be a list of key names")
    return (Action(kind=K.KEY, keys=tuple(map(_small, key_list(keys)))),)


def _small(key: str) -> str:
    """Letters are written as capitals, whatever is held."""
    return key.lower() if len(key) == len(key.lower()) == 1 else key


def _wait(call: Arguments, points: Points) -> tuple[Action, ...]:
    return (Action(kind=K.WAIT, seconds=seconds(call.get("seconds", WAIT_S))),)


TYPES: dict[str, Build] = {
    "click": _click,
    "double_click": _double_click,
    "move": _move,
    "drag": _drag,
    "scroll": _scroll,
    "type": _type,
    "keypress": _keypress,
    "wait": _wait,
    "screenshot": _wait,
}
"""Whitelist: type of an action -> builder."""


def openai_action(action: Action, point: WritePoint) -> str:
    """The JSON that does `action`. Raises ValueError when the tool has no word for it."""
    require_words(action, "openai", "modifiers")
    return json.dumps(_arguments(action, point), ensure_ascii=False)


def _arguments(action: Action, point: WritePoint) -> dict[str, Any]:
    at = _place(action.x, action.y, point)
    held = {"keys": [key.upper() for key in action.modifiers]} if action.modifiers else {}
    match action.kind:
        case K.TYPE:
            return {"type": "type", "text": action.text}
        case K.KEY if all(_small(key) == key for key in action.keys):
            return {"type": "keypress", "keys": list(action.keys)}
        case K.WAIT if action.seconds == WAIT_S:
            return {"type": "wait"}
        case K.SCROLL:
            return {"type": "scroll", **at, "scroll_x": action.scroll_x, "scroll_y": action.scroll_y, **held}
        case K.DRAG if at:
            return {"type": "drag", "path": [at, _place(action.to_x, action.to_y, point)], **held}
        case K.MOVE if at:
            return {"type": "move", **at}
        case K.DOUBLE_CLICK if at:
            return {"type": "double_click", **at, **held}
        case K.CLICK | K.RIGHT_CLICK | K.MIDDLE_CLICK if at:
            return {"type": "click", **at, "button": BUTTONS[action.kind], **held}
    raise ValueError(f"the openai dialect has no word for this {action.kind.value}")


def _place(x: int | None, y: int | None, point: WritePoint) -> dict[str, int]:
    return {} if x is None or y is None else dict(zip(("x", "y"), point(x, y), strict=True))


OPENAI = Dialect(
    name="openai",
    of="OpenAI's computer tool",
    start=start,
    parse=parse,
    write=openai_action,
    prompt=PROMPT,
    point_form="x and y",
    space=CoordinateSpace.SCREEN,
    is_tried=True,
)
