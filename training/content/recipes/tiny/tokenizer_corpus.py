"""The texts that the tiny tokenizer is trained on: what first-desk's tasks say and what an agent answers."""

import itertools
from collections.abc import Iterator
from typing import Literal

from training.actions.write_completion import completion_text
from training.content.task_sets.first_desk import COLOURS, NOUNS, generate
from training.contracts.types import Action, ActionKind, Task

KEYS = ("Down", "Up", "Left", "Right", "Return", "Tab", "Escape", "ctrl", "alt", "shift", "s", "a", "space")
POINTING = (
    ActionKind.CLICK,
    ActionKind.DOUBLE_CLICK,
    ActionKind.RIGHT_CLICK,
    ActionKind.MIDDLE_CLICK,
    ActionKind.MOVE,
)
STATUSES: tuple[Literal["success", "failure"], ...] = ("success", "failure")
OTHER_TEXT = """user assistant system
The last answer held no action.
The last action failed: outside the screen.
Open the file manager. Close the window. Press the OK button. Choose the last row of the list and save it.
Click the field, type a name and press Return. Double click the icon. Drag the window to the left.
"""
SCREEN = (512, 384)
REPEATS = 8
"""Of what must become a token although few tasks say it."""


def corpus() -> Iterator[str]:
    """Lines in which the tasks' words and the pieces of an action are frequent enough to become tokens."""
    for task in generate():
        if task.split == "train":
            yield from _task_lines(task)
    for word in (*COLOURS, *NOUNS):
        yield from [f'Type "{word} {word}"'] * REPEATS
    for first, second in itertools.product(KEYS, KEYS):
        yield _written(Action(kind=ActionKind.KEY, keys=(first, second)))
    for kind, status in itertools.product(POINTING, STATUSES):
        yield from [_written(Action(kind=kind, x=100, y=200))] * REPEATS
        yield from [_written(Action(kind=ActionKind.TERMINATE, status=status))] * REPEATS
    yield from [_written(Action(kind=ActionKind.WAIT, seconds=1.0))] * REPEATS
    yield from OTHER_TEXT.splitlines() * REPEATS


def _task_lines(task: Task) -> Iterator[str]:
    yield task.instruction
    for values in task.oracle["actions"]:
        yield _written(Action.model_validate(values))
    for widget in task.oracle["widgets"]:
        yield f"{widget['name']}\n"


def _written(action: Action) -> str:
    return completion_text(action, SCREEN)
