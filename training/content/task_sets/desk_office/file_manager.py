"""Jobs in the file manager (pcmanfm): open, rename, make, move, copy and delete."""

import random
from collections.abc import Sequence
from typing import Any

from training.content.task_sets.desk_office.kinds import (
    CITIES,
    GOODS,
    HOME,
    REST,
    TOPICS,
    double_click,
    folder_holds,
    kind,
    setting_is,
    window_in_front,
    word,
    words,
)
from training.content.task_sets.steps_and_evaluators import (
    DONE,
    place_window,
    press_keys,
    setup_step,
    type_text,
)
from training.content.task_sets.task_family import Problem, Split
from training.contracts.types import Action

FOLDER = f"{HOME}/work"
BOX = (100, 100, 700, 480)
ENTER, DELETE = press_keys("Return"), press_keys("shift", "Delete")


def open_folder(paths: Sequence[str]) -> tuple[dict[str, Any], ...]:
    """Set-up steps: the file manager on a folder with these files and, with a / at the end, folders."""
    folders = [path for path in paths if path.endswith("/")]
    made = [setup_step("execute", command=["mkdir", "-p", *(f"{FOLDER}/{name}" for name in ("", *folders))])]
    made += [
        setup_step("write_file", path=f"{FOLDER}/{path}", content=f"{path}\n")
        for path in paths
        if not path.endswith("/")
    ]
    x, y, width, height = BOX
    return (
        *made,
        setup_step("launch", command=["pcmanfm", "-n", FOLDER]),
        place_window("work", BOX),
        setup_step("wait_color", x=x + width - 60, y=y + height - 60, color="#ffffff"),
    )


def select(name: str) -> tuple[Action, ...]:
    """Actions that select an item by the first letters of its name."""
    return type_text(name[:4]), press_keys("Escape")


def _icon(column: int) -> tuple[int, int]:
    """Where the item of a column of the first row is."""
    return BOX[0] + 205 + 94 * column, BOX[1] + 96


def open_item(rng: random.Random, split: Split) -> Problem:
    names = sorted(words(rng, split, TOPICS, 4))
    column = rng.randrange(4)
    return Problem(
        instruction=f'Open the folder "{names[column]}".',
        config=open_folder([f"{name}/" for name in names]),
        evaluator=window_in_front(names[column]),
        actions=(double_click(*_icon(column)), DONE),
    )


def rename(rng: random.Random, split: Split) -> Problem:
    names, new = words(rng, split, GOODS, 4), word(rng, split, CITIES).lower()
    files = [f"{name}.txt" for name in names]
    return Problem(
        instruction=f'Rename "{files[0]}" to "{new}.txt".',
        config=open_folder(files),
        evaluator=folder_holds(FOLDER, [f"{new}.txt", *files[1:]]),
        actions=(*select(names[0]), press_keys("F2"), type_text(new), ENTER, DONE),
    )


def new_folder(rng: random.Random, split: Split) -> Problem:
    name, files = word(rng, split, TOPICS), [f"{name}.txt" for name in words(rng, split, GOODS, 2)]
    return Problem(
        instruction=f'Make a folder named "{name}" here.',
        config=open_folder(files),
        evaluator=folder_holds(FOLDER, [name, *files]),
        actions=(press_keys("ctrl", "shift", "n"), type_text(name), ENTER, DONE),
    )


def delete(rng: random.Random, split: Split) -> Problem:
    names = words(rng, split, GOODS, 4)
    files = [f"{name}.txt" for name in names]
    return Problem(
        instruction=f'Delete the file "{files[0]}" for good.',
        config=open_folder(files),
        evaluator=folder_holds(FOLDER, files[1:]),
        actions=(*select(names[0]), DELETE, ENTER, DONE),
    )


def delete_two(rng: random.Random, split: Split) -> Problem:
    names = words(rng, split, GOODS, 4)
    files = [f"{name}.txt" for name in names]
    return Problem(
        instruction=f'Delete "{files[0]}" and "{files[1]}" for good; keep the rest.',
        config=open_folder(files),
        evaluator=folder_holds(FOLDER, files[2:]),
        actions=(*select(names[0]), DELETE, ENTER, *select(names[1]), DELETE, ENTER, DONE),
    )


def _into_folder(
    rng: random.Random, split: Split, verb: str, keys: tuple[str, str], *, stays: bool
) -> Problem:
    names, folder = words(rng, split, GOODS, 3), word(rng, split, TOPICS)
    files = [f"{name}.txt" for name in names]
    left = files if stays else files[1:]
    return Problem(
        instruction=f'{verb} "{files[0]}" into the folder "{folder}".',
        config=open_folder([f"{folder}/", *files]),
        evaluator=folder_holds(FOLDER, [folder, f"{folder}/{files[0]}", *left]),
        actions=(
            *select(names[0]),
            REST,  # a quick key still finds the item that the first letter alone had chosen
            press_keys(*keys),
            *select(folder),
            ENTER,
            REST,  # a busy machine shows the folder later than the key's first reaction
            press_keys("ctrl", "v"),
            DONE,
        ),
    )


def move(rng: random.Random, split: Split) -> Problem:
    return _into_folder(rng, split, "Move", ("ctrl", "x"), stays=False)


def copy(rng: random.Random, split: Split) -> Problem:
    return _into_folder(rng, split, "Copy", ("ctrl", "c"), stays=True)


def copy_and_rename(rng: random.Random, split: Split) -> Problem:
    """A backup under another name, beside two files that stay as they are."""
    names, new = words(rng, split, GOODS, 2), word(rng, split, CITIES).lower()
    folder, files = word(rng, split, TOPICS), [f"{name}.txt" for name in names]
    return Problem(
        instruction=(
            f'Make a folder "{folder}", copy "{files[0]}" into it, and name that copy "{new}.txt". '
            "The file here stays as it is."
        ),
        config=open_folder(files),
        evaluator=folder_holds(FOLDER, [folder, f"{folder}/{new}.txt", *files]),
        actions=(
            press_keys("ctrl", "shift", "n"),
            type_text(folder),
            ENTER,
            *select(names[0]),
            press_keys("ctrl", "c"),
            *select(folder),
            ENTER,
            press_keys("ctrl", "v"),
            press_keys("ctrl", "a"),
            press_keys("F2"),
            type_text(new),
            ENTER,
            DONE,
        ),
    )


CHOICES = (
    ("open files with a single click", "single_click", "1"),
    ("delete files without asking", "confirm_del", "0"),
    ("delete files at once instead of moving them to the trash can", "use_trash", "0"),
)
"""What the dialog Preferences offers first: in words, its setting, and the setting's other value."""


def preference(rng: random.Random, split: Split) -> Problem:
    """The third choice is held out."""
    row = 2 if split == "heldout" else rng.randrange(2)
    words_of, name, value = CHOICES[row]
    files = [f"{good}.txt" for good in words(rng, split, GOODS, 3)]
    return Problem(
        instruction=f"In the file manager's preferences, choose to {words_of}.",
        config=open_folder(files),
        evaluator=setting_is(f"{HOME}/.config/libfm/libfm.conf", name, value, before=str(1 - int(value))),
        actions=(
            press_keys("alt", "e"),
            press_keys("Up"),
            ENTER,
            REST,
            *(press_keys("Tab"),) * (row + 1),
            press_keys("space"),
            press_keys("Escape"),
            DONE,
        ),
    )


KINDS = (
    kind("settings/files-preferences", 3, preference),
    kind("files/open", 1, open_item),
    kind("files/rename", 3, rename),
    kind("files/new-folder", 2, new_folder),
    kind("files/delete", 2, delete),
    kind("files/delete-two", 3, delete_two),
    kind("files/move", 3, move),
    kind("files/copy", 3, copy),
    kind("files/copy-and-rename", 4, copy_and_rename),
)
