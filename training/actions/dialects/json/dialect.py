"""Dialect json: {"action":"left_click","coordinate":[350,720]}"""

from training.actions.dialects.contract import Dialect
from training.actions.parse import json_call as reader
from training.actions.write.json_call import json_call
from training.contracts.config import CoordinateSpace

PROMPT = """You operate a desktop computer. Every message shows you the current screen.
Think briefly if you must, then answer with exactly one action as a JSON object on the last line.

Actions:
{{"action": "left_click", "coordinate": [x, y]}}  press the left mouse button; also right_click, \
middle_click, double_click, triple_click
{{"action": "mouse_move", "coordinate": [x, y]}}  move the pointer without pressing
{{"action": "left_click_drag", "start_coordinate": [x, y], "coordinate": [x, y]}}  drag from the \
first point to the second
{{"action": "scroll", "coordinate": [x, y], "direction": "down", "amount": n}}  turn the wheel n \
notches; also up, left, right
{{"action": "type", "text": "..."}}  type text; \\n is the Return key
{{"action": "key", "keys": ["ctrl", "s"]}}  press one key or a chord
{{"action": "wait", "seconds": s}}  let the computer work
{{"action": "terminate", "status": "success"}}  the task is done; status "failure" says it cannot be done

{coordinates}
Look at the new screen after every action before you decide that the task is done."""

JSON = Dialect(
    name="json",
    of="Deskhand, Slime-OSWorld",
    start=reader.start,
    parse=reader.parse,
    write=json_call,
    prompt=PROMPT,
    space=CoordinateSpace.PERMILLE,
    is_tried=True,
)
