"""The generated task sets by name; a set is one folder here and one row."""

from collections.abc import Callable

from training.content.task_sets import desk_office, smoldesk, windows_keyboard
from training.content.task_sets.first_desk import level_4 as first_desk
from training.contracts.types import Task

GENERATORS: dict[str, Callable[[int], list[Task]]] = {
    "first-desk": first_desk.generate_all,
    "first-desk-choice": first_desk.generate_choice,
    "desk-office": desk_office.generate,
    "smoldesk": smoldesk.generate,
    "smoldesk-choice": smoldesk.generate_choice,
    "windows-keyboard": windows_keyboard.generate,
}
"""Name of the set -> its tasks, from a seed."""


CHOICE = "-choice"
"""Ends the name of a set with the same train tasks and others held out, to choose settings on."""


def train_alike(one: str, other: str) -> bool:
    """Whether two sets have the same train tasks."""
    return one.removesuffix(CHOICE) == other.removesuffix(CHOICE)
