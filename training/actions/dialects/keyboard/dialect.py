"""Dialect keyboard: <action>sendkey ctrl-s</action>, type, typeline, wait; <done/>."""

from training.actions.dialects.contract import Dialect
from training.actions.parse import keyboard_tags as reader
from training.actions.write.json_call import WritePoint
from training.actions.write.keyboard_tags import keyboard_tag
from training.contracts.config import CoordinateSpace
from training.contracts.types import Action

PROMPT = """You operate a desktop computer by its keyboard. Every message shows you the current \
screen.
Think briefly if you must, then answer with exactly one action as a tag on the last line.

Actions:
<action>sendkey ctrl-s</action>  press one key or a chord; names are joined by "-": ret, esc, tab, up, down, \
left, right, home, end, pgup, pgdn, delete, backspace, spc, f1 to f12, letters, digits; ctrl, alt, shift, \
meta_l
<action>type some text</action>  type the text
<action>typeline some text</action>  type the text, then Return
<action>wait 2</action>  let the computer work for so many seconds
<done/>  the task is done

Useful keys: meta_l-r opens the Run dialog, alt-f4 closes a window, alt-tab changes windows, ctrl-s saves.
Look at the new screen after every action before you decide that the task is done."""


def write(action: Action, point: WritePoint) -> str:
    """The tag that says `action`. Raises ValueError when none does."""
    return keyboard_tag(action)


KEYBOARD = Dialect(
    name="keyboard",
    of="The Windows example",
    start=reader.start,
    parse=reader.parse,
    write=write,
    prompt=PROMPT,
    space=CoordinateSpace.SCREEN,
    is_tried=True,
)
