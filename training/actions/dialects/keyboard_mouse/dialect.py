"""Dialect keyboard-mouse: as keyboard, with click, doubleclick, rightclick, move, drag and scroll."""

from training.actions.dialects.contract import Dialect
from training.actions.dialects.keyboard_mouse.parse import parse
from training.actions.parse.keyboard_tags import start
from training.actions.pointer_words import TAG_POINTER
from training.actions.write.json_call import WritePoint, direction_and_amount
from training.actions.write.keyboard_tags import keyboard_tag, tag
from training.actions.write.unsaid_parts import require_words
from training.contracts.config import CoordinateSpace
from training.contracts.types import Action, ActionKind

PROMPT = """You operate a desktop computer by its keyboard and mouse. Every message shows you the current \
screen.
Think briefly if you must, then answer with exactly one action as a tag on the last line.

Actions:
<action>sendkey ctrl-s</action>  press one key or a chord; names are joined by "-": ret, esc, tab, up, down, \
left, right, home, end, pgup, pgdn, delete, backspace, spc, f1 to f12, letters, digits; ctrl, alt, shift, \
meta_l
<action>type some text</action>  type the text
<action>typeline some text</action>  type the text, then Return
<action>click x y</action>  press the left mouse button; also doubleclick, rightclick, move
<action>drag x y x y</action>  drag from the first point to the second
<action>scroll down n</action>  turn the wheel n notches; also up, left, right
<action>wait 2</action>  let the computer work for so many seconds
<done/>  the task is done

Useful keys: meta_l-r opens the Run dialog, alt-f4 closes a window, alt-tab changes windows, ctrl-s saves.
{coordinates}
Look at the new screen after every action before you decide that the task is done."""


def keyboard_mouse_tag(action: Action, point: WritePoint) -> str:
    """The tag that says `action`, with a pointer. Raises ValueError when none does."""
    require_words(action, "keyboard-mouse")
    if action.kind is ActionKind.DRAG:
        start, end = (
            _numbers(action, action.x, action.y, point),
            _numbers(action, action.to_x, action.to_y, point),
        )
        return tag(f"drag {start} {end}")
    if action.kind is ActionKind.SCROLL and action.x is None:
        direction, amount = direction_and_amount(action)
        return tag(f"scroll {direction} {amount}")
    verb = TAG_POINTER.get(action.kind)
    return tag(f"{verb} {_numbers(action, action.x, action.y, point)}") if verb else keyboard_tag(action)


def _numbers(action: Action, x: int | None, y: int | None, point: WritePoint) -> str:
    if x is None or y is None:
        raise ValueError(f"the keyboard-mouse dialect needs every point of a {action.kind.value}")
    return " ".join(str(number) for number in point(x, y))


KEYBOARD_MOUSE = Dialect(
    name="keyboard-mouse",
    of="The Windows example, with a mouse",
    start=start,
    parse=parse,
    write=keyboard_mouse_tag,
    prompt=PROMPT,
    point_form="x y",
    space=CoordinateSpace.SCREEN,
    is_tried=True,
)
