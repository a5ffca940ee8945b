"""System messages and user messages of the prompt styles."""

from __future__ import annotations

from training.contracts.config import CoordinateSpace, PromptConfig

COORDINATE_HELP = {
    CoordinateSpace.PERMILLE: "Coordinates are {form}, each from 0 to 1000, relative to the screenshot.",
    CoordinateSpace.SCREEN: "Coordinates are {form} in pixels of the desktop screen.",
    CoordinateSpace.RESIZED: "Coordinates are {form} in pixels of the screenshot as you see it.",
}

COMPUTER_USE = """You operate a desktop computer. Every message shows you the current screen.
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

KEYBOARD = """You operate a desktop computer by its keyboard{mouse}. Every message shows you the current \
screen.
Think briefly if you must, then answer with exactly one action as a tag on the last line.

Actions:
<action>sendkey ctrl-s</action>  press one key or a chord; names are joined by "-": ret, esc, tab, up, down, \
left, right, home, end, pgup, pgdn, delete, backspace, spc, f1 to f12, letters, digits; ctrl, alt, shift, \
meta_l
<action>type some text</action>  type the text
<action>typeline some text</action>  type the text, then Return
{mouse_actions}<action>wait 2</action>  let the computer work for so many seconds
<done/>  the task is done

Useful keys: meta_l-r opens the Run dialog, alt-f4 closes a window, alt-tab changes windows, ctrl-s saves.
{coordinates}Look at the new screen after every action before you decide that the task is done."""

MOUSE_ACTIONS = """<action>click x y</action>  press the left mouse button; also doubleclick, rightclick, move
<action>drag x y x y</action>  drag from the first point to the second
<action>scroll down n</action>  turn the wheel n notches; also up, left, right
"""


def system_text(prompt: PromptConfig) -> str:
    """The system message; empty for the short style, whose agent learned the actions by heart."""
    if prompt.style == "first-desk":
        return ""
    help_text = COORDINATE_HELP[prompt.coordinate_space]
    if prompt.dialect == "keyboard":
        return KEYBOARD.format(mouse="", mouse_actions="", coordinates="")
    if prompt.dialect == "keyboard-mouse":
        coordinates = help_text.format(form="x y") + "\n"
        return KEYBOARD.format(mouse=" and mouse", mouse_actions=MOUSE_ACTIONS, coordinates=coordinates)
    return COMPUTER_USE.format(coordinates=help_text.format(form="[x, y]"))


def turn_text(prompt: PromptConfig, turn_index: int, text: str, instruction: str) -> str:
    """The words of one user message.

    `text` is the observation's text: the instruction at turn 0, the last action's result later. The
    short style repeats the instruction right before the answer: a small model need not look back.
    """
    if turn_index == 0:
        return text if prompt.style == "first-desk" else f"Task: {text}"
    parts = [text, instruction] if prompt.style == "first-desk" else [text or "The screen now:"]
    return "\n".join(part for part in parts if part)
