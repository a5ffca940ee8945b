"""Dialect gui-owl: a call with `click`, `drag` and `coordinate2`, between <thinking> and <conclusion>.

<thinking>
The menu is there.
</thinking>
<tool_call>
{"name": "computer_use", "arguments": {"action": "click", "coordinate": [350, 720]}}
</tool_call>
<conclusion>
I open the menu.
</conclusion>
"""

from typing import Any

from training.actions.dialects.contract import MAX_ACTION_WORDS, Dialect, action_line
from training.actions.dialects.gui_owl.layout import all_in_one
from training.actions.parse import json_call as reader
from training.actions.pointer_words import JSON_POINTER
from training.actions.write.json_call import WritePoint, json_arguments
from training.actions.write.tool_call import WORDS, tagged
from training.actions.write.unsaid_parts import require_words
from training.contracts.config import CoordinateSpace
from training.contracts.types import Action, ActionKind

K = ActionKind
SAID = frozenset(
    {K.CLICK, K.RIGHT_CLICK, K.MIDDLE_CLICK, K.DOUBLE_CLICK, K.MOVE, K.DRAG, K.SCROLL, K.TYPE, K.KEY, K.WAIT}
    | {K.TERMINATE}
)
FACTOR = 28
PROMPT = """You operate a desktop computer with the tool computer_use. You see the current screen.

First think in <thinking></thinking> tags, then call the tool once, then say in <conclusion></conclusion> \
tags what you did:
<tool_call>
{{"name": "computer_use", "arguments": {{"action": ...}}}}
</tool_call>

Arguments by action:
click, right_click, middle_click, double_click, mouse_move: "coordinate": [x, y]
drag: "coordinate": [x, y], "coordinate2": [x, y]
scroll: "pixels": n, positive is up; key: "keys": ["ctrl", "s"]
type: "text": "...", "clear": 1 to empty the field first, "enter": 1 to press Return after it
wait: "time": seconds; terminate: "status": "success" or "failure"

{coordinates}"""


def gui_owl_call(action: Action, point: WritePoint) -> str:
    """The completion that does `action`. Raises ValueError when its tool has no word for it."""
    require_words(action, "gui-owl")
    if action.kind not in SAID or (action.kind is K.TERMINATE and action.text):
        raise ValueError(f"the gui-owl dialect has no word for this {action.kind.value}")
    if action.kind in JSON_POINTER and action.x is None:
        raise ValueError(f"the gui-owl dialect needs the point of a {action.kind.value}")
    words = WORDS[action.kind]
    call = tagged(_arguments(action, point))
    return f"<thinking>\n{words}\n</thinking>\n{call}\n<conclusion>\n{words}\n</conclusion>"


def _arguments(action: Action, point: WritePoint) -> dict[str, Any]:
    if action.kind is K.DRAG:
        if action.x is None or action.y is None or action.to_x is None or action.to_y is None:
            raise ValueError("the gui-owl dialect needs both points of a drag")
        ends = {"coordinate": point(action.x, action.y), "coordinate2": point(action.to_x, action.to_y)}
        return {"action": "drag", **ends}
    if action.kind is K.SCROLL:
        if action.scroll_x or action.x is not None:
            raise ValueError("the gui-owl dialect scrolls up and down, where the pointer is")
        return {"action": "scroll", "pixels": -action.scroll_y}
    arguments = json_arguments(action, point)
    return {**arguments, "action": "click"} if action.kind is K.CLICK else arguments


def conclusion(completion: str) -> str:
    """What a completion concludes, in one line."""
    _, opened, rest = completion.rpartition("<conclusion>")
    words = " ".join(rest.partition("</conclusion>")[0].split())
    return words[:MAX_ACTION_WORDS] if opened and words else action_line(completion)


GUI_OWL = Dialect(
    name="gui-owl",
    of="GUI-Owl",
    start=reader.start,
    parse=reader.parse,
    write=gui_owl_call,
    prompt=PROMPT,
    space=CoordinateSpace.RESIZED,
    factor=FACTOR,
    layout=all_in_one,
    words=conclusion,
)
