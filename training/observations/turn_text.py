"""The words of an observation: the message to the agent, then what was read under its heading.

Open the settings.

[Marked widgets]
index	tag	name	text
1	push-button	Save	""

[Accessibility tree]
push-button "Save" 320,470

[Terminal]
user@desk:~$ ls
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from training.actions.coordinates import model_point, resized_size
from training.contracts.config import ModelConfig, PromptConfig
from training.contracts.types import Observation
from training.observations.osworld_table import osworld_table
from training.observations.widget_tree import BadTree, Widget, widgets_of

MARKS, TREE, TERMINAL = "[Marked widgets]", "[Accessibility tree]", "[Terminal]"
_HEADING = re.compile(rf"\n\n(?=(?:{'|'.join(map(re.escape, (MARKS, TREE, TERMINAL)))})\n)")
UNREADABLE = "(could not be read)"
EMPTY_TREE, EMPTY_TERMINAL = "(no widgets)", "(no terminal)"


SHOWN_STATES = ("focused", "checked", "selected", "pressed", "expanded")
MAX_TEXT = 200
"""Characters of what stands in one widget."""
Place = Callable[[int, int], tuple[int, int]]
"""A screen pixel in the numbers that the policy writes."""


def short_list(xml: str, place: Place) -> str:
    """The usable widgets of a tree, a line each. Raises BadTree.

    push-button "Save" 320,470
    entry "Name" = "Ada" 512,233 focused
    """
    return "\n".join(_line(widget, place) for widget in widgets_of(xml) if widget.is_usable)


def _line(widget: Widget, place: Place) -> str:
    left, top, width, height = widget.box or (0, 0, 0, 0)
    x, y = place(left + width // 2, top + height // 2)
    name, text = _short(widget.name), _short(widget.text)
    words = [widget.role, f'"{name}"' if name else "", f'= "{text}"' if text and text != name else ""]
    states = [state for state in SHOWN_STATES if widget.has_state(state)]
    if not widget.has_state("enabled"):
        states.append("disabled")
    return " ".join(word for word in (*words, f"{x},{y}", ",".join(states)) if word)


def _short(text: str) -> str:
    """On one line, cut."""
    line = " ".join(text.split())
    return line if len(line) <= MAX_TEXT else f"{line[:MAX_TEXT]}..."


@dataclass(frozen=True, slots=True, kw_only=True)
class RawTexts:
    """What was read of a desktop; None = it could not be read."""

    tree: str | None = None
    terminal: str | None = None
    marks: str | None = None
    """List of the boxes on the picture."""


def turn_text(
    message: str,
    read: RawTexts,
    index: int,
    prompt: PromptConfig,
    model: ModelConfig,
    screen: tuple[int, int],
) -> str:
    """All that the policy reads at turn `index`; `message` is the instruction or the last action's result."""
    if not prompt.shows_texts_at(index):
        return message
    parts = [message]
    if prompt.reads_marks:
        listed = UNREADABLE if read.marks is None else first_lines(read.marks, prompt.accessibility_chars)
        parts.append(f"{MARKS}\n{listed}")
    if prompt.reads_tree:
        parts.append(f"{TREE}\n{_tree_text(read.tree, prompt, model, screen)}")
    if prompt.reads_terminal:
        parts.append(f"{TERMINAL}\n{_terminal_text(read.terminal, prompt.terminal_chars)}")
    return "\n\n".join(parts)


def split_text(text: str) -> tuple[str, str]:
    """(the message to the agent, the rest with its headings) of a turn's text."""
    found = _HEADING.search(text)
    return (text[: found.start()], text[found.end() :]) if found else (text, "")


def text_for(observation: Observation, prompt: PromptConfig) -> str:
    """The text of a recorded turn without what `prompt` does not read; a policy's own is as it was."""
    surplus = [
        heading
        for heading, read, is_wanted in (
            (MARKS, observation.marks, prompt.reads_marks),
            (TREE, observation.accessibility, prompt.reads_tree),
            (TERMINAL, observation.terminal, prompt.reads_terminal),
        )
        if read is not None and not is_wanted
    ]
    if not surplus:
        return observation.text
    message, *parts = _HEADING.split(observation.text)
    return "\n\n".join([message, *(part for part in parts if part.partition("\n")[0] not in surplus)])


def unmarked(observation: Observation, prompt: PromptConfig) -> Observation:
    """A recorded turn's with the plain screenshot, where it was kept and `prompt` has no marks."""
    marks = observation.marks
    if marks is None or not marks.plain or prompt.reads_marks:
        return observation
    text = text_for(observation, prompt)
    return observation.model_copy(update={"sha256": marks.plain, "marks": None, "text": text})


def _tree_text(tree: str | None, prompt: PromptConfig, model: ModelConfig, screen: tuple[int, int]) -> str:
    if tree is None:
        return UNREADABLE
    image = resized_size(screen, model.min_pixels, model.max_pixels, model.image_factor)

    def place(x: int, y: int) -> tuple[int, int]:
        x, y = model_point(x, y, prompt.coordinate_space, screen, image, grid=prompt.permille_grid)
        return x, y

    try:
        lines = osworld_table(tree) if prompt.accessibility_form == "osworld" else short_list(tree, place)
    except BadTree:
        return UNREADABLE
    return first_lines(lines, prompt.accessibility_chars) or EMPTY_TREE


def _terminal_text(terminal: str | None, budget: int) -> str:
    if terminal is None:
        return UNREADABLE
    return last_lines(terminal.strip("\n"), budget) or EMPTY_TERMINAL


def first_lines(text: str, budget: int) -> str:
    """The text within `budget` characters; whole lines, and a notice of how many are left out."""
    if len(text) <= budget:
        return text
    kept = text[:budget].rpartition("\n")[0]
    left = text[len(kept) :].count("\n") or 1
    return f"{kept}\n[... {left} more lines left out]"


def last_lines(text: str, budget: int) -> str:
    """As `first_lines`, from the end: the newest output counts."""
    if len(text) <= budget:
        return text
    kept = text[-budget:]
    kept = kept.partition("\n")[2] or kept
    left = text[: len(text) - len(kept)].count("\n") or 1
    return f"[... {left} earlier lines left out]\n{kept}"
