"""System messages and user messages of the prompt styles."""

from __future__ import annotations

from collections.abc import Sequence

from training.contracts.config import CoordinateSpace, PromptConfig
from training.observations.turn_text import split_text

MAX_ACTION_WORDS = 300
"""Characters of a turn in the list of previous actions."""

OLD_TEXTS = "[Accessibility tree]\n(earlier tree and terminal left out)"

COORDINATE_HELP = {
    CoordinateSpace.PERMILLE: "Coordinates are {form}, each from 0 to 1000, relative to the screenshot.",
    CoordinateSpace.RELATIVE: "Coordinates are {form} on a grid of 1000 x 1000 over the screenshot.",
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


TOOL_CALL = """You operate a desktop computer with the tool computer_use. Every message shows you the \
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

SEVERAL_ACTIONS = """
You may write up to {most} actions, one after another, where you need not look at the screen between them."""

TASK = """Do the next step of this task.

Task: {instruction}

Done so far:
{previous_actions}"""


def system_text(prompt: PromptConfig) -> str:
    """The system message; empty for the short style, whose agent learned the actions by heart."""
    if prompt.system_text:
        return prompt.system_text
    if prompt.style == "first-desk":
        return ""
    text = _style_text(prompt)
    if prompt.actions_per_turn == 1:
        return text
    several = SEVERAL_ACTIONS.format(most=prompt.actions_per_turn)
    return text.replace("exactly one action", "an action") + several


def _style_text(prompt: PromptConfig) -> str:
    help_text = COORDINATE_HELP[prompt.coordinate_space]
    if prompt.dialect == "keyboard":
        return KEYBOARD.format(mouse="", mouse_actions="", coordinates="")
    if prompt.dialect == "keyboard-mouse":
        coordinates = help_text.format(form="x y") + "\n"
        return KEYBOARD.format(mouse=" and mouse", mouse_actions=MOUSE_ACTIONS, coordinates=coordinates)
    if prompt.style == "tool-call":
        return TOOL_CALL.format(coordinates=help_text.format(form="[x, y]"))
    return COMPUTER_USE.format(coordinates=help_text.format(form="[x, y]"))


def first_text(prompt: PromptConfig, instruction: str, previous_actions: Sequence[str]) -> str:
    """The words of the first user message; `previous_actions` are those of turns that are not shown."""
    instruction, read = _split(prompt, instruction)
    words = _task_text(prompt, instruction, previous_actions)
    return f"{words}\n\n{read}" if read else words


def _task_text(prompt: PromptConfig, instruction: str, previous_actions: Sequence[str]) -> str:
    template = prompt.task_text or (TASK if prompt.style == "tool-call" else "")
    if template:
        listed = "\n".join(f"Step {number}: {words}" for number, words in enumerate(previous_actions, 1))
        # One after the other: an instruction may hold the other mark.
        before, _, after = template.partition("{instruction}")
        return f"{_listed(before, listed)}{instruction}{_listed(after, listed)}"
    words = instruction if prompt.style == "first-desk" else f"Task: {instruction}"
    return "\n".join([words, *(f"Done before: {action}" for action in previous_actions)])


def later_text(prompt: PromptConfig, text: str, instruction: str) -> str:
    """The words of a later user message; `text` is the last action's result.

    The short style repeats the instruction right before the answer: a small model need not look back.
    """
    told, read = _split(prompt, text)
    if prompt.style == "tool-call":
        return read
    if prompt.style == "first-desk":
        words = "\n".join(part for part in (told, _split(prompt, instruction)[0]) if part)
    else:
        words = told or "The screen now:"
    return f"{words}\n\n{read}" if read else words


def words_now(prompt: PromptConfig, text: str, task: str, *, is_kept: bool) -> str:
    """A turn's text as it stands in a later context: without tree and terminal where they are not kept, and
    with the words of `task` where the turns before it are not shown."""
    told, read = _split(prompt, text)
    if not read and not task:
        return text
    words = _split(prompt, task)[0] if task else told
    if not read:
        return words
    return f"{words}\n\n{read if is_kept else OLD_TEXTS}"


def _split(prompt: PromptConfig, text: str) -> tuple[str, str]:
    """(what the agent is told, tree and terminal), where the prompt reads them."""
    return split_text(text) if prompt.reads_text else (text, "")


def action_words(completion: str) -> str:
    """What a completion says that it does: its "Action:" line, else its first one."""
    lines = [line.strip() for line in completion.splitlines() if line.strip()]
    named = [line for line in lines if line.lower().startswith("action:")]
    words = named[0].split(":", 1)[1] if named else (lines[0] if lines else "nothing")
    return words.strip()[:MAX_ACTION_WORDS]


def _listed(text: str, actions: str) -> str:
    return text.replace("{previous_actions}", actions or "None")
