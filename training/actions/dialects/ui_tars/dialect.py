"""Dialect ui-tars: Action: click(start_box='(350,720)'), in pixels of the resized image."""

from training.actions.dialects.contract import Dialect
from training.actions.dialects.ui_tars.layout import task_first
from training.actions.dialects.ui_tars.parse import parse, start
from training.actions.dialects.ui_tars.write import ui_tars_call
from training.contracts.config import CoordinateSpace

FACTOR = 28
"""Of Qwen2.5-VL, on which these models stand."""
PROMPT = """You operate a desktop computer. Every message shows you the current screen.
Answer in two lines:
Thought: what you see and plan
Action: one call

Calls:
click(start_box='(x,y)'), left_double(...), right_single(...), hover(...)
drag(start_box='(x,y)', end_box='(x,y)')
hotkey(key='ctrl c')  keys are separated by blanks
press(key='shift') and release(key='shift')  hold a key from one to the other
type(content='...')  \\n is the Return key
scroll(start_box='(x,y)', direction='down')  also up, left, right
wait()  let the computer work
finished(content='...')  the task is done; call_user() says that it cannot be done

{coordinates}"""

UI_TARS = Dialect(
    name="ui-tars",
    of="UI-TARS 1.5",
    start=start,
    parse=parse,
    write=ui_tars_call,
    prompt=PROMPT,
    point_form="(x,y)",
    space=CoordinateSpace.RESIZED,
    factor=FACTOR,
    layout=task_first,
)
