"""Dialect anthropic: a tool_use block of the tool `computer`.

{"type": "tool_use", "name": "computer", "input": {"action": "left_click", "coordinate": [350, 720]}}
"""

import json
from typing import Any

from training.actions.dialects.contract import Dialect
from training.actions.parse import json_call as reader
from training.actions.pointer_words import JSON_POINTER
from training.actions.write.json_call import WritePoint, direction_and_amount, short_number
from training.actions.write.unsaid_parts import require_words
from training.contracts.config import CoordinateSpace
from training.contracts.types import Action, ActionKind

K = ActionKind
BUTTONS = {K.MOUSE_DOWN: "left_mouse_down", K.MOUSE_UP: "left_mouse_up"}
PLUS = {"+": "plus"}
"""The plus joins keys, so its own key goes by its name."""
PROMPT = """You operate a desktop computer with the tool computer. Every message shows you the current screen.
Answer with one call:
{{"type": "tool_use", "name": "computer", "input": {{"action": ...}}}}

Input by action:
left_click, right_click, middle_click, double_click, triple_click: "coordinate": [x, y]; "text" holds keys
mouse_move: "coordinate"; left_click_drag: "start_coordinate" and "coordinate"; left_mouse_down, left_mouse_up
scroll: "coordinate", "scroll_direction", "scroll_amount"; type: "text"; key: "text": "ctrl+s"
hold_key: "text" and "duration"; wait: "duration" in seconds; done and fail end the task

{coordinates}"""


def tool_use(action: Action, point: WritePoint) -> str:
    """The block that does `action`. Raises ValueError when the tool has no word for it."""
    require_words(action, "anthropic", "modifiers", "hold_s")
    block = {"type": "tool_use", "name": "computer", "input": _input(action, point)}
    return json.dumps(block, ensure_ascii=False)


def _input(action: Action, point: WritePoint) -> dict[str, Any]:
    at = {} if action.x is None or action.y is None else {"coordinate": point(action.x, action.y)}
    held = {"text": _joined(action.modifiers)} if action.modifiers else {}
    match action.kind:
        case K.TYPE:
            return {"action": "type", "text": action.text}
        case K.KEY if action.seconds:
            return {
                "action": "hold_key",
                "text": _joined(action.keys),
                "duration": short_number(action.seconds),
            }
        case K.KEY:
            return {"action": "key", "text": _joined(action.keys)}
        case K.WAIT:
            return {"action": "wait", "duration": short_number(action.seconds)}
        case K.SCROLL:
            direction, amount = direction_and_amount(action)
            return {"action": "scroll", **at, "scroll_direction": direction, "scroll_amount": amount, **held}
        case K.DRAG if not held and action.to_x is not None and action.to_y is not None:
            start = {"start_coordinate": at["coordinate"]} if at else {}
            return {"action": "left_click_drag", **start, "coordinate": point(action.to_x, action.to_y)}
        case K.MOUSE_DOWN | K.MOUSE_UP if not at:
            return {"action": BUTTONS[action.kind]}
        case K.TERMINATE if not action.text:
            return {"action": "fail" if action.status == "failure" else "done"}
        case _ if action.kind in JSON_POINTER and (at or action.kind is not K.MOVE):
            return {"action": JSON_POINTER[action.kind], **at, **held}
    raise ValueError(f"the anthropic dialect has no word for this {action.kind.value}")


def _joined(keys: tuple[str, ...]) -> str:
    return "+".join(PLUS.get(key, key) for key in keys)


ANTHROPIC = Dialect(
    name="anthropic",
    of="Anthropic's computer tool",
    start=reader.start,
    parse=reader.parse,
    write=tool_use,
    prompt=PROMPT,
    space=CoordinateSpace.SCREEN,
)
