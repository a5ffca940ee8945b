"""Dialect holo: {"thought": "...", "tool_call": {"tool_name": "click_desktop", "x": 5, "y": 6}}

Holo1 and 1.5 say {"thought": "...", "action": {"action": "click_element", "x": 5, "y": 6}}; both are read.
"""

import json
from collections.abc import Callable
from typing import Any

from training.actions.dialects.contract import MAX_ACTION_WORDS, Dialect, action_line
from training.actions.errors import ActionTextError
from training.actions.key_names import key_list
from training.actions.parse.argument_values import (
    Found,
    Points,
    Start,
    listed,
    notches,
    scroll,
    seconds,
    status_of,
    typed_text,
)
from training.actions.parse.call_blocks import Arguments, call_start, calls_in
from training.actions.parse.thoughts import words_around
from training.actions.write.json_call import WritePoint, direction_and_amount, short_number
from training.actions.write.tool_call import WORDS
from training.actions.write.unsaid_parts import require_words
from training.contracts.types import Action, ActionKind

K = ActionKind
PLACES = ("_element_abs", "_desktop", "_element", "_abs")
"""Ends of tools' names that say where they act."""
HOLDERS = ("tool_call", "action")
"""Where an answer keeps its call."""
WRITES_A_LINE = "write_element_abs"
BROWSERS_OWN = ("go_back", "refresh", "goto", "restart")
ACTIONS_OF_HOLO_1 = frozenset({"click_element", WRITES_A_LINE, "scroll", "wait", "answer", *BROWSERS_OWN})
Build = Callable[[Arguments, Points], tuple[Action, ...]]
PROMPT = """You operate a desktop computer. Every message shows you the current screen.
Answer with one JSON object:
{{"note": null, "thought": "what you plan", "tool_call": {{"tool_name": "click_desktop", \
"element": "what it is", "x": ..., "y": ...}}}}

Tools: click_desktop, double_click_desktop, right_click_desktop, mouse_move_desktop (element, x, y); \
drag_desktop (x, y, to_x, to_y); write_desktop (content); hotkey_desktop (keys); \
scroll_desktop (direction, amount, x, y); wait (seconds); answer (content); terminate (status).

{coordinates}"""


def is_call(value: Any) -> bool:
    """Whether a JSON value calls one of the tools."""
    return isinstance(value, dict) and (bool(_name(value)) or any(is_call(value.get(key)) for key in HOLDERS))


def _name(value: Arguments) -> str:
    """Of the tool that `value` calls; empty when it is none."""
    if "tool_name" in value:
        return str(value["tool_name"])
    name = value.get("action")
    return name if isinstance(name, str) and name in ACTIONS_OF_HOLO_1 else ""


def start(text: str) -> Start | None:
    """Where a call begins; None when there is none."""
    return call_start(text, is_call)


def parse(text: str, points: Points) -> Found:
    """The calls in `text`, in order, with the thoughts that they carry."""
    calls = calls_in(text, is_call)
    actions = tuple(action for call in calls for action in _actions(call.value, points))
    said = [str(call.value[key]) for call in calls for key in ("note", "thought") if call.value.get(key)]
    around = words_around(text, calls[0].start, calls[-1].end)
    return Found(actions, "\n".join(part for part in (around, *said) if part))


def _actions(value: Any, points: Points) -> tuple[Action, ...]:
    call = _innermost(value)
    name = _name(call)
    plain = next((name.removesuffix(end) for end in PLACES if name.endswith(end)), name)
    build = TOOLS.get(plain)
    if build is None and name in BROWSERS_OWN:
        raise ActionTextError(f"{name} is a browser's tool; a desktop has none")
    if build is None:
        raise ActionTextError(f"unknown tool {name[:40]!r}")
    return build({key: part for key, part in call.items() if part is not None}, points)


def _innermost(value: Any) -> Arguments:
    return (
        value if _name(value) else next(_innermost(value[key]) for key in HOLDERS if is_call(value.get(key)))
    )


def _point(call: Arguments, points: Points, x: str = "x", y: str = "y") -> tuple[int, int]:
    if x not in call or y not in call:
        raise ActionTextError(f"{_name(call)} needs {x} and {y}")
    return points.to_screen(call[x], call[y])


def _at_point(kind: ActionKind) -> Build:
    def build(call: Arguments, points: Points) -> tuple[Action, ...]:
        x, y = _point(call, points)
        return (Action(kind=kind, x=x, y=y),)

    return build


def _drag(call: Arguments, points: Points) -> tuple[Action, ...]:
    x, y = _point(call, points)
    to_x, to_y = _point(call, points, "to_x", "to_y")
    return (Action(kind=K.DRAG, x=x, y=y, to_x=to_x, to_y=to_y),)


def _write(call: Arguments, points: Points) -> tuple[Action, ...]:
    """With a place, it is clicked first; Holo1's action ends with Return."""
    typed = Action(kind=K.TYPE, text=typed_text(call.get("content", call.get("text"))))
    end = (Action(kind=K.KEY, keys=key_list(["enter"])),) if _name(call) == WRITES_A_LINE else ()
    return (*_at_point(K.CLICK)(call, points), typed, *end) if "x" in call else (typed, *end)


def _hotkey(call: Arguments, points: Points) -> tuple[Action, ...]:
    keys = listed(call.get("keys", call.get("key")))
    if not isinstance(keys, (str, list)) or not keys:
        raise ActionTextError("keys must be a list of key names")
    return (Action(kind=K.KEY, keys=key_list(keys)),)


def _scroll(call: Arguments, points: Points) -> tuple[Action, ...]:
    x, y = _point(call, points) if "x" in call else (None, None)
    return (scroll(call.get("direction"), notches(call.get("amount", 3)), x, y),)


def _wait(call: Arguments, points: Points) -> tuple[Action, ...]:
    return (Action(kind=K.WAIT, seconds=seconds(call.get("seconds", 1.0))),)


def _end(call: Arguments, points: Points) -> tuple[Action, ...]:
    text = call.get("content", call.get("answer"))
    status = status_of(call.get("status", "success"))
    return (Action(kind=K.TERMINATE, status=status, text=typed_text(text) if text is not None else None),)


POINTER = {
    K.CLICK: "click",
    K.DOUBLE_CLICK: "double_click",
    K.TRIPLE_CLICK: "triple_click",
    K.RIGHT_CLICK: "right_click",
    K.MIDDLE_CLICK: "middle_click",
    K.MOVE: "mouse_move",
}
TOOLS: dict[str, Build] = {
    **{name: _at_point(kind) for kind, name in POINTER.items()},
    "left_click": _at_point(K.CLICK),
    "hover": _at_point(K.MOVE),
    "drag": _drag,
    "write": _write,
    "type": _write,
    "hotkey": _hotkey,
    "press": _hotkey,
    "press_key": _hotkey,
    "scroll": _scroll,
    "wait": _wait,
    "answer": _end,
    "terminate": _end,
}
"""Whitelist: a tool's name without its end -> builder of its actions."""


def holo_call(action: Action, point: WritePoint) -> str:
    """The completion that does `action`. Raises ValueError when there is no tool for it."""
    require_words(action, "holo")
    said = {"note": None, "thought": WORDS[action.kind], "tool_call": _call(action, point)}
    return json.dumps(said, ensure_ascii=False)


def _call(action: Action, point: WritePoint) -> dict[str, Any]:
    match action.kind:
        case K.TYPE:
            return {"tool_name": "write_desktop", "content": action.text}
        case K.KEY:
            return {"tool_name": "hotkey_desktop", "keys": list(action.keys)}
        case K.WAIT:
            return {"tool_name": "wait", "seconds": short_number(action.seconds)}
        case K.TERMINATE if action.text and action.status != "failure":
            return {"tool_name": "answer", "content": action.text}
        case K.TERMINATE if not action.text:
            return {"tool_name": "terminate", "status": action.status or "success"}
        case K.SCROLL:
            direction, amount = direction_and_amount(action)
            place = {} if action.x is None else _place(action.x, action.y, point)
            return {"tool_name": "scroll_desktop", "direction": direction, "amount": amount, **place}
        case K.DRAG:
            end = _place(action.to_x, action.to_y, point, "to_")
            return {"tool_name": "drag_desktop", **_place(action.x, action.y, point), **end}
        case _ if action.kind in POINTER:
            name = f"{POINTER[action.kind]}_desktop"
            return {"tool_name": name, "element": "", **_place(action.x, action.y, point)}
    raise ValueError(f"the holo dialect has no tool for this {action.kind.value}")


def _place(x: int | None, y: int | None, point: WritePoint, prefix: str = "") -> dict[str, int]:
    if x is None or y is None:
        raise ValueError("the holo dialect needs every point of an action")
    across, down = point(x, y)
    return {f"{prefix}x": across, f"{prefix}y": down}


def thought(completion: str) -> str:
    """What a completion thinks, for the list of previous actions."""
    try:
        calls = calls_in(completion, is_call)
    except ActionTextError:
        return action_line(completion)
    return str(calls[0].value.get("thought") or "nothing")[:MAX_ACTION_WORDS]


HOLO = Dialect(
    name="holo",
    of="Holo",
    start=start,
    parse=parse,
    write=holo_call,
    prompt=PROMPT,
    point_form="x and y",
    words=thought,
    is_tried=True,
)
