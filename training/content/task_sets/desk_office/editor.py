"""Jobs in the text editor (mousepad): lines, words, files, and its own settings."""

import random

from training.content.task_sets.desk_office.kinds import (
    CITIES,
    GOODS,
    HOME,
    PEOPLE,
    REST,
    TOPICS,
    all_of,
    kind,
    open_in_editor,
    setting_is,
    word,
    words,
)
from training.content.task_sets.steps_and_evaluators import DONE, file_holds, press_keys, type_text
from training.content.task_sets.task_family import Problem, Split

SETTINGS = f"{HOME}/.config/glib-2.0/settings/keyfile"
SAVE = press_keys("ctrl", "s")


def _list(rng: random.Random, split: Split, number: int) -> list[str]:
    return [f"{rng.randint(2, 40)} {name}" for name in words(rng, split, GOODS, number)]


def append(rng: random.Random, split: Split) -> Problem:
    path, lines = f"{HOME}/{word(rng, split, TOPICS)}.txt", _list(rng, split, 5)
    return Problem(
        instruction=f'Add the line "{lines[4]}" at the end of the list and save the file.',
        config=open_in_editor(path, "\n".join(lines[:4]) + "\n"),
        evaluator=file_holds(path, "\n".join(lines), wait_s=1.0),
        actions=(press_keys("ctrl", "End"), type_text(lines[4]), SAVE, DONE),
    )


def insert_first(rng: random.Random, split: Split) -> Problem:
    path, lines = f"{HOME}/{word(rng, split, TOPICS)}.txt", _list(rng, split, 4)
    title = f"Order for {word(rng, split, CITIES)}"
    return Problem(
        instruction=f'Put the line "{title}" above the first line and save the file.',
        config=open_in_editor(path, "\n".join(lines) + "\n"),
        evaluator=file_holds(path, "\n".join([title, *lines]), wait_s=1.0),
        actions=(press_keys("ctrl", "Home"), type_text(title + "\n"), SAVE, DONE),
    )


def delete_line(rng: random.Random, split: Split) -> Problem:
    path, lines = f"{HOME}/{word(rng, split, TOPICS)}.txt", _list(rng, split, 4)
    number = rng.randint(2, 4)
    kept = [line for index, line in enumerate(lines, 1) if index != number]
    return Problem(
        instruction=f'Delete the line "{lines[number - 1]}" and save the file.',
        config=open_in_editor(path, "\n".join(lines) + "\n"),
        evaluator=file_holds(path, "\n".join(kept), wait_s=1.0),
        actions=(
            press_keys("ctrl", "l"),
            type_text(str(number)),
            press_keys("Return"),
            REST,
            press_keys("ctrl", "shift", "Delete"),
            SAVE,
            DONE,
        ),
    )


def replace(rng: random.Random, split: Split) -> Problem:
    path = f"{HOME}/{word(rng, split, TOPICS)}.txt"
    (old, new), people = words(rng, split, CITIES, 2), words(rng, split, PEOPLE, 3)
    text = "\n".join(f"{person} travels to {old} on day {day}." for day, person in enumerate(people, 1))
    return Problem(
        instruction=f'Replace every "{old}" in the file by "{new}" and save it.',
        config=open_in_editor(path, text + "\n"),
        evaluator=file_holds(path, text.replace(old, new), wait_s=1.0),
        actions=(
            press_keys("ctrl", "r"),
            REST,
            type_text(old),
            press_keys("Tab"),
            type_text(new),
            press_keys("alt", "a"),
            press_keys("alt", "r"),
            REST,
            press_keys("Escape"),
            SAVE,
            DONE,
        ),
    )


def save_as(rng: random.Random, split: Split) -> Problem:
    (old, new), lines = words(rng, split, TOPICS, 2), _list(rng, split, 3)
    path, copy = f"{HOME}/{old}.txt", f"{HOME}/{new}.txt"
    text = "\n".join(lines)
    return Problem(
        instruction=f'Save a copy of the file as "{new}.txt" in the same folder.',
        config=open_in_editor(path, text + "\n"),
        evaluator=all_of(file_holds(copy, text, wait_s=1.0), file_holds(path, text, wait_s=1.0)),
        actions=(
            press_keys("ctrl", "shift", "s"),
            REST,
            press_keys("ctrl", "a"),
            type_text(f"{new}.txt"),
            REST,
            press_keys("Return"),
            DONE,
        ),
    )


def new_file(rng: random.Random, split: Split) -> Problem:
    old, new = words(rng, split, TOPICS, 2)
    line = f"Call {word(rng, split, PEOPLE)} at {rng.randint(8, 17)}:30"
    path = f"{HOME}/{new}.txt"
    return Problem(
        instruction=f'Make a new file with the line "{line}" and save it as "{new}.txt" in the home folder.',
        config=open_in_editor(f"{HOME}/{old}.txt", "Nothing here changes.\n"),
        evaluator=all_of(
            file_holds(path, line, wait_s=1.0),
            file_holds(f"{HOME}/{old}.txt", "Nothing here changes.", wait_s=1.0),
        ),
        actions=(
            press_keys("ctrl", "n"),
            type_text(line),
            SAVE,
            type_text(f"{new}.txt"),
            REST,
            press_keys("Return"),
            DONE,
        ),
    )


VIEWS = (("line numbers", "show-line-numbers", 2), ("the toolbar", "toolbar-visible", 4),
         ("the status bar", "statusbar-visible", 5))  # fmt: skip
"""What the menu View can show: its name, its setting, and its row in the menu."""


def view(rng: random.Random, split: Split) -> Problem:
    """The row of the menu that is held out is the last one."""
    name, setting, row = rng.choice(VIEWS[2:] if split == "heldout" else VIEWS[:2])
    path = f"{HOME}/{word(rng, split, TOPICS)}.txt"
    down = (press_keys("Down"),) * row
    return Problem(
        instruction=f"Let the editor show {name}.",
        config=open_in_editor(path, "\n".join(_list(rng, split, 4)) + "\n"),
        evaluator=setting_is(SETTINGS, setting, "true", before="false"),
        actions=(press_keys("alt", "v"), *down, press_keys("Return"), DONE),
    )


KINDS = (
    kind("editor/append", 2, append),
    kind("editor/insert", 2, insert_first),
    kind("editor/delete-line", 3, delete_line),
    kind("editor/replace", 3, replace),
    kind("editor/save-as", 2, save_as),
    kind("editor/new-file", 3, new_file),
    kind("settings/editor-view", 3, view),
)
