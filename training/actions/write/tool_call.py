"""Actions as published Qwen3-VL models write them: an "Action:" line, then the call in its tags."""

import json
from typing import Any

from training.actions.write.json_call import WritePoint, json_arguments
from training.actions.write.unsaid_parts import newer_parts
from training.contracts.types import Action, ActionKind

WORDS = {
    ActionKind.CLICK: "Click.",
    ActionKind.RIGHT_CLICK: "Click with the right button.",
    ActionKind.MIDDLE_CLICK: "Click with the middle button.",
    ActionKind.DOUBLE_CLICK: "Click twice.",
    ActionKind.TRIPLE_CLICK: "Click three times.",
    ActionKind.MOVE: "Move the pointer.",
    ActionKind.DRAG: "Drag to there.",
    ActionKind.SCROLL: "Turn the wheel.",
    ActionKind.TYPE: "Type the text.",
    ActionKind.KEY: "Press the keys.",
    ActionKind.KEY_DOWN: "Hold the keys down.",
    ActionKind.KEY_UP: "Let go of the keys.",
    ActionKind.MOUSE_DOWN: "Hold the button down.",
    ActionKind.MOUSE_UP: "Let go of the button.",
    ActionKind.PASTE: "Paste the text.",
    ActionKind.WAIT: "Wait.",
    ActionKind.TERMINATE: "End the task.",
}
"""What a demonstration, which has no words of its own, says that it does."""


def tool_call(action: Action, point: WritePoint) -> str:
    """The completion that does `action`. Raises ValueError when the tool has no such arguments."""
    return f"Action: {WORDS[action.kind]}\n{tagged(tool_arguments(action, point))}"


def tagged(arguments: dict[str, Any]) -> str:
    """The call with these arguments, in its tags."""
    call = json.dumps({"name": "computer_use", "arguments": arguments}, ensure_ascii=False)
    return f"<tool_call>\n{call}\n</tool_call>"


def tool_arguments(action: Action, point: WritePoint) -> dict[str, Any]:
    """As the json dialect's, with this tool's names of a scroll's and a drag's arguments."""
    if action.kind is ActionKind.DRAG and action.x is not None:
        raise ValueError("the tool's drag starts where the pointer is; write a mouse_move first")
    arguments = json_arguments(action, point)
    if action.kind is not ActionKind.SCROLL:
        return arguments
    place = {"coordinate": arguments["coordinate"]} if "coordinate" in arguments else {}
    if action.scroll_x:
        return {"action": "hscroll", **place, "pixels": action.scroll_x, **newer_parts(action)}
    return {"action": "scroll", **place, "pixels": -action.scroll_y, **newer_parts(action)}
