"""System messages and user messages of the prompt styles."""

from collections.abc import Sequence

from training.actions.dialects.registry import find_dialect
from training.contracts.config import CoordinateSpace, PromptConfig
from training.observations.turn_text import MARKS, split_text

OLD_TEXTS = "[Accessibility tree]\n(earlier tree and terminal left out)"
OLD_MARKS = "[Marked widgets]\n(earlier widgets left out)"

COORDINATE_HELP = {
    CoordinateSpace.PERMILLE: "Coordinates are {form}, each from 0 to 1000, relative to the screenshot.",
    CoordinateSpace.RELATIVE: "Coordinates are {form} on a grid of 1000 x 1000 over the screenshot.",
    CoordinateSpace.SCREEN: "Coordinates are {form} in pixels of the desktop screen.",
    CoordinateSpace.RESIZED: "Coordinates are {form} in pixels of the screenshot as you see it.",
}

SEVERAL_ACTIONS = """
You may write up to {most} actions, one after another, where you need not look at the screen between them."""

MARKED = """
Numbered boxes on the screenshot are the widgets of the list beside it."""
NAMED_MARKS = " tag_1 stands for the middle of box 1: pyautogui.click(tag_1)."

ALONE = """Do the next step of this task.

Task: {instruction}"""
TASK = (
    ALONE
    + """

Done so far:
{previous_actions}"""
)


def system_text(prompt: PromptConfig) -> str:
    """The system message; empty for the short style, whose agent learned the actions by heart."""
    if prompt.system_text:
        return prompt.system_text
    if prompt.style == "first-desk":
        return ""
    is_tagged = prompt.style == "tool-call" and prompt.dialect in ("auto", "json")
    row = find_dialect("tool-call" if is_tagged else prompt.dialect)
    help_text = COORDINATE_HELP[prompt.coordinate_space].format(form=row.point_form)
    text = row.prompt.format(coordinates=help_text)
    if prompt.reads_marks:
        text += MARKED + (NAMED_MARKS if row.names_marks else "")
    if prompt.actions_per_turn == 1:
        return text
    several = SEVERAL_ACTIONS.format(most=prompt.actions_per_turn)
    return text.replace("exactly one action", "an action") + several


def first_text(prompt: PromptConfig, instruction: str, previous_actions: Sequence[str]) -> str:
    """The words of the first user message; `previous_actions` are those of turns that are not shown."""
    instruction, read = split_observation(prompt, instruction)
    words = _task_text(prompt, instruction, previous_actions)
    return f"{words}\n\n{read}" if read else words


def _task_text(prompt: PromptConfig, instruction: str, previous_actions: Sequence[str]) -> str:
    template = prompt.task_text or (TASK if prompt.style == "tool-call" else "")
    if template:
        listed = "\n".join(f"Step {number}: {words}" for number, words in enumerate(previous_actions, 1))
        return _filled(template, instruction, listed)
    words = instruction if prompt.style == "first-desk" else f"Task: {instruction}"
    return "\n".join([words, *(f"Done before: {action}" for action in previous_actions)])


def task_words(prompt: PromptConfig, instruction: str, listed: str | None) -> str:
    """The task for a layout of an agent's own; `listed`: what was done, None where it is not listed."""
    return _filled(prompt.task_text or (ALONE if listed is None else TASK), instruction, listed or "")


def _filled(template: str, instruction: str, listed: str) -> str:
    # One after the other: an instruction may hold the other mark.
    before, _, after = template.partition("{instruction}")
    return f"{_listed(before, listed)}{instruction}{_listed(after, listed)}"


def later_text(prompt: PromptConfig, text: str, instruction: str) -> str:
    """The words of a later user message; `text` is the last action's result.

    The short style repeats the instruction right before the answer: a small model need not look back.
    """
    said, read = split_observation(prompt, text)
    if prompt.style == "tool-call":
        return read
    if prompt.style == "first-desk":
        words = "\n".join(part for part in (said, split_observation(prompt, instruction)[0]) if part)
    else:
        words = said or "The screen now:"
    return f"{words}\n\n{read}" if read else words


def words_now(prompt: PromptConfig, text: str, task: str, *, is_kept: bool) -> str:
    """A turn's text as it stands in a later context: without tree and terminal where they are not kept, and
    with the words of `task` where the turns before it are not shown."""
    said, read = split_observation(prompt, text)
    if not read and not task:
        return text
    words = split_observation(prompt, task)[0] if task else said
    if not read:
        return words
    left_out = OLD_MARKS if read.startswith(MARKS) else OLD_TEXTS
    return f"{words}\n\n{read if is_kept else left_out}"


def split_observation(prompt: PromptConfig, text: str) -> tuple[str, str]:
    """(instruction or result, tree and terminal), where the prompt reads them."""
    return split_text(text) if prompt.reads_text else (text, "")


def action_words(completion: str, prompt: PromptConfig | None = None) -> str:
    """What a completion says that it does, in the words that its dialect has for it."""
    return find_dialect(prompt.dialect if prompt else "auto").words(completion)


def _listed(text: str, actions: str) -> str:
    return text.replace("{previous_actions}", actions or "None")
