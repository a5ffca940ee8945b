"""Actions as the arguments of a computer_use tool call."""

import json
from collections.abc import Callable
from typing import Any

from training.actions.pointer_words import DIRECTIONS, JSON_POINTER
from training.actions.write.unsaid_parts import newer_parts
from training.contracts.types import Action, ActionKind

WritePoint = Callable[[int, int], list[int]]
"""Screen pixels -> the numbers of the completion's coordinate space."""


def json_call(action: Action, point: WritePoint) -> str:
    """The call as compact JSON."""
    return json.dumps(json_arguments(action, point), ensure_ascii=False, separators=(",", ":"))


def json_arguments(action: Action, point: WritePoint) -> dict[str, Any]:
    """The arguments of the tool call that says `action`. Raises ValueError when none does."""
    return {**_plain_arguments(action, point), **newer_parts(action)}


def _plain_arguments(action: Action, point: WritePoint) -> dict[str, Any]:
    match action.kind:
        case ActionKind.DRAG:
            return _drag(action, point)
        case ActionKind.SCROLL:
            direction, amount = direction_and_amount(action)
            return {"action": "scroll", **_at(action, point), "direction": direction, "amount": amount}
        case ActionKind.TYPE | ActionKind.PASTE:
            return {"action": action.kind.value, "text": action.text or ""}
        case ActionKind.KEY | ActionKind.KEY_DOWN | ActionKind.KEY_UP:
            return {"action": action.kind.value, "keys": list(action.keys)}
        case ActionKind.MOUSE_DOWN | ActionKind.MOUSE_UP:
            return {"action": action.kind.value, **_at(action, point)}
        case ActionKind.WAIT:
            return {"action": "wait", "time": short_number(action.seconds)}
        case ActionKind.TERMINATE if action.text:
            return {"action": "answer", "text": action.text}
        case ActionKind.TERMINATE:
            return {"action": "terminate", "status": action.status or "success"}
    if action.kind is ActionKind.MOVE and action.x is None:
        raise ValueError("the json dialect has no word for a move without a point")
    return {"action": JSON_POINTER[action.kind], **_at(action, point)}


def direction_and_amount(action: Action) -> tuple[str, int]:
    """A scroll as one direction and its notches. Raises ValueError for a scroll along both axes."""
    if action.scroll_x and action.scroll_y:
        raise ValueError("no dialect has a word for a scroll along both axes; write two actions")
    amount = max(abs(action.scroll_x), abs(action.scroll_y))
    for word, (right, down) in DIRECTIONS.items():
        if (right * amount, down * amount) == (action.scroll_x, action.scroll_y):
            return word, amount
    raise AssertionError("a scroll along one axis has a direction")


def short_number(seconds: float) -> float | int:
    """Without ".0" for whole seconds."""
    return int(seconds) if seconds == int(seconds) else seconds


def _at(action: Action, point: WritePoint) -> dict[str, Any]:
    return {} if action.x is None or action.y is None else {"coordinate": point(action.x, action.y)}


def _drag(action: Action, point: WritePoint) -> dict[str, Any]:
    if action.to_x is None or action.to_y is None:
        raise ValueError("a drag needs to_x and to_y")
    start = {} if action.x is None or action.y is None else {"start_coordinate": point(action.x, action.y)}
    return {"action": "left_click_drag", **start, "coordinate": point(action.to_x, action.to_y)}
