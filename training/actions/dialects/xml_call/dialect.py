"""Dialect xml-call: a computer_use call whose parameters are elements.

<tool_call>
<function=computer_use>
<parameter=action>
left_click
</parameter>
<parameter=coordinate>
[350, 720]
</parameter>
</function>
</tool_call>
"""

import json

from training.actions.dialects.contract import Dialect
from training.actions.parse import json_call as reader
from training.actions.write.json_call import WritePoint
from training.actions.write.tool_call import WORDS, tool_arguments
from training.contracts.types import Action

OWN_MARKS = ("</parameter>", "</think>", "</thinking>")
PROMPT = """You operate a desktop computer with the tool computer_use. Every message shows you the \
current screen.

Answer with a line "Action: " that says in a few words what you do, then one call of the tool:
<tool_call>
<function=computer_use>
<parameter=action>
left_click
</parameter>
<parameter=coordinate>
[x, y]
</parameter>
</function>
</tool_call>

Parameters by action:
left_click, right_click, middle_click, double_click, triple_click, mouse_move: coordinate, [x, y]
left_click_drag: coordinate, the end; it starts where the pointer is
scroll: pixels, positive is up; hscroll: pixels, positive is right
type: text; key: keys, ["ctrl", "s"]; wait: time in seconds
answer: text; terminate: status, success or failure

{coordinates}"""


def xml_call(action: Action, point: WritePoint) -> str:
    """The completion that does `action`. Raises ValueError when the call cannot hold it."""
    if any(mark in (action.text or "") for mark in OWN_MARKS):
        raise ValueError("the xml-call dialect cannot type the closing tag of a parameter or a thought")
    lines = [f"Action: {WORDS[action.kind]}", "<tool_call>", "<function=computer_use>"]
    for key, value in tool_arguments(action, point).items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        lines += [f"<parameter={key}>", text, "</parameter>"]
    return "\n".join([*lines, "</function>", "</tool_call>"])


XML_CALL = Dialect(
    name="xml-call",
    of="Qwen3.5",
    start=reader.start,
    parse=reader.parse,
    write=xml_call,
    prompt=PROMPT,
)
