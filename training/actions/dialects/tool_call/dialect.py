"""Dialect tool-call: the call between <tool_call> tags, behind the thoughts of a thinking model.

<tool_call>
{"name": "computer_use", "arguments": {"action": "left_click", "coordinate": [350, 720]}}
</tool_call>
"""

from training.actions.dialects.contract import Dialect
from training.actions.parse import json_call as reader
from training.actions.write.tool_call import tool_call

PROMPT = """You operate a desktop computer with the tool computer_use. Every message shows you the \
current screen.

Answer with two things: a line "Action: " that says in a few words what you do, then one call of the tool:
<tool_call>
{{"name": "computer_use", "arguments": {{"action": ...}}}}
</tool_call>

Arguments by action:
left_click, right_click, middle_click, double_click, triple_click, mouse_move: "coordinate": [x, y]
left_click_drag: "coordinate": [x, y], the end; it starts where the pointer is
scroll: "pixels": n, positive is up; hscroll: "pixels": n, positive is right
type: "text": "..."; key: "keys": ["ctrl", "s"]; wait: "time": seconds
answer: "text": "..."; terminate: "status": "success" or "failure"

{coordinates}"""

TOOL_CALL = Dialect(
    name="tool-call",
    of="Qwen3-VL Instruct and Thinking",
    start=reader.start,
    parse=reader.parse,
    write=tool_call,
    prompt=PROMPT,
)
