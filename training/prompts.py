"""The words of the two prompt styles. Torch-free."""

from __future__ import annotations

from training.config import CoordinateSpace, PromptConfig

COORDINATE_HELP = {
    CoordinateSpace.PERMILLE: "Coordinates are [x, y], each from 0 to 1000, relative to the screenshot.",
    CoordinateSpace.SCREEN: "Coordinates are [x, y] in pixels of the desktop screen.",
    CoordinateSpace.RESIZED: "Coordinates are [x, y] in pixels of the screenshot as you see it.",
}

COMPUTER_USE = """You operate a desktop computer. Every message shows you the current screen.
Think briefly if you must, then answer with exactly one action as a JSON object on the last line.

Actions:
{{"action": "left_click", "coordinate": [x, y]}}  press the left mouse button; also right_click, \
middle_click, double_click, triple_click
{{"action": "mouse_move", "coordinate": [x, y]}}  move the pointer without pressing
{{"action": "left_click_drag", "coordinate": [x, y], "to": [x, y]}}  drag from the first point to the second
{{"action": "scroll", "coordinate": [x, y], "amount": n}}  turn the wheel n notches, negative is down
{{"action": "type", "text": "..."}}  type text; \\n is the Return key
{{"action": "key", "keys": ["ctrl", "s"]}}  press one key or a chord
{{"action": "wait", "seconds": s}}  let the computer work
{{"action": "terminate", "status": "success"}}  the task is done; status "failure" says it cannot be done

{coordinates}
Look at the new screen after every action before you decide that the task is done."""


def system_text(prompt: PromptConfig) -> str:
    """The system message; empty for the short style, whose agent learned the actions by heart."""
    if prompt.style == "first-desk":
        return ""
    return COMPUTER_USE.format(coordinates=COORDINATE_HELP[prompt.coordinate_space])


def turn_text(prompt: PromptConfig, turn_index: int, text: str, instruction: str) -> str:
    """The words of one user message.

    `text` is the observation's text: the instruction at turn 0, the last action's result later. The
    short style repeats the instruction right before the answer: a small model need not look back.
    """
    if turn_index == 0:
        return text if prompt.style == "first-desk" else f"Task: {text}"
    parts = [text, instruction] if prompt.style == "first-desk" else [text or "The screen now:"]
    return "\n".join(part for part in parts if part)
