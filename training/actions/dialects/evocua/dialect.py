"""Dialect evocua: as tool-call, with key_down and key_up, and without what its tool lacks."""

from training.actions.dialects.contract import Dialect
from training.actions.parse import json_call as reader
from training.actions.write.json_call import WritePoint
from training.actions.write.tool_call import tool_call
from training.actions.write.unsaid_parts import require_words
from training.contracts.types import Action, ActionKind

MISSING = (ActionKind.MOUSE_DOWN, ActionKind.MOUSE_UP, ActionKind.PASTE)
PROMPT = """You operate a desktop computer with the tool computer_use. Every message shows you the \
current screen.

Answer with two things: a line "Action: " that says in a few words what you do, then one call of the tool:
<tool_call>
{{"name": "computer_use", "arguments": {{"action": ...}}}}
</tool_call>

Arguments by action:
left_click, right_click, middle_click, double_click, triple_click, mouse_move: "coordinate": [x, y]
left_click_drag: "coordinate": [x, y], the end; it starts where the pointer is
scroll: "pixels": n, positive is up; type: "text": "..."
key: "keys": ["ctrl", "s"]; key_down and key_up: "keys": ["shift"], held from one to the other
wait: "time": seconds; terminate: "status": "success" or "failure"

{coordinates}"""


def evocua_call(action: Action, point: WritePoint) -> str:
    """The completion that does `action`. Raises ValueError when its tool has no word for it."""
    require_words(action, "evocua")
    if action.kind in MISSING:
        raise ValueError(f"the evocua dialect has no word for {action.kind.value}")
    return tool_call(action, point)


EVOCUA = Dialect(
    name="evocua",
    of="EvoCUA",
    start=reader.start,
    parse=reader.parse,
    write=evocua_call,
    prompt=PROMPT,
)
