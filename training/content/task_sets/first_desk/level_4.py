"""Level 4 of first-desk: the same keys and words, in three programs that were not written for training.

answer   zenity     type two words into a dialog and press Return
replace  mousepad   replace a note's text and save
rename   pcmanfm    rename the only file of a folder
"""

import random
from collections.abc import Iterator
from dataclasses import replace

from training.content.task_sets import first_desk
from training.content.task_sets.steps_and_evaluators import (
    DONE,
    file_holds,
    place_window,
    press_keys,
    setup_step,
    type_text,
)
from training.content.task_sets.task_family import (
    COLOURS,
    NOUNS,
    SCREEN,
    Family,
    Problem,
    Split,
    family_tasks,
    unseen_pairs,
)
from training.contracts.types import Task

ANSWER_FILE = "/home/user/answer.txt"
FOLDER = "/home/user/files"
TITLES = ("Question", "Search", "Name", "Label")


def generate_all(seed: int = 0) -> list[Task]:
    """The whole set first-desk, levels 1 to 4."""
    real = [task for family in LEVEL_4_FAMILIES for task in family_tasks(family, seed)]
    return [*first_desk.generate(seed), *real]


def generate_choice(seed: int = 0) -> list[Task]:
    """The same train tasks, and in place of the held-out ones as many that follow them."""
    return [
        task
        for family in (*first_desk.FAMILIES, *LEVEL_4_FAMILIES)
        for number, task in enumerate(_with_a_third_split(family, seed))
        if number not in range(family.num_train, family.num_train + family.num_heldout)
    ]


def _with_a_third_split(family: Family, seed: int) -> Iterator[Task]:
    longer = replace(family, num_heldout=2 * family.num_heldout)
    return family_tasks(longer, seed, task_set="first-desk-choice")


def build_answer(rng: random.Random, split: Split) -> Problem:
    """A dialog of zenity; it writes the answer when it closes."""
    phrase = " ".join(rng.choice(unseen_pairs(NOUNS, list(COLOURS), split)))
    title, box = rng.choice(TITLES), _box(rng, 320, 140)
    command = f"zenity --entry --title={title} --text='Which words?' > {ANSWER_FILE}"
    x, y, width, _ = box
    return Problem(
        instruction=f'Type "{phrase}" and press Return.',
        config=(
            setup_step("launch", command=command, shell=True),
            place_window(title, box),
            setup_step("wait_color", x=x + width // 2, y=y + 46, color="#ffffff"),
        ),
        evaluator=file_holds(ANSWER_FILE, phrase, wait_s=0.5),
        actions=(type_text(phrase), press_keys("Return"), DONE),
        widgets=({"name": "answer", "x": x + width // 2, "y": y + 46},),
    )


def build_replace(rng: random.Random, split: Split) -> Problem:
    """The editor on a file that holds another phrase."""
    phrase = " ".join(rng.choice(unseen_pairs(list(COLOURS), NOUNS, split)))
    old = " ".join(rng.choice(unseen_pairs(list(COLOURS), NOUNS, "train")))
    if old == phrase:
        old = "old text"
    box = _box(rng, rng.randrange(340, 420, 20), rng.randrange(200, 280, 20))
    x, y, width, height = box
    return Problem(
        instruction=f'Replace the text by "{phrase}" and save.',
        config=first_desk.open_note(old, box),
        evaluator=file_holds(first_desk.NOTE_FILE, phrase, wait_s=0.3),
        actions=(press_keys("ctrl", "a"), type_text(phrase), press_keys("ctrl", "s"), DONE),
        widgets=({"name": "note", "x": x + width // 2, "y": y + height // 2},),
    )


def build_rename(rng: random.Random, split: Split) -> Problem:
    """The file manager on a folder with one file; F2 selects the name without its ending."""
    old, new = rng.choice(unseen_pairs(NOUNS, NOUNS, split))
    box = _box(rng, 420, rng.randrange(220, 300, 20))
    x, y, width, height = box
    return Problem(
        instruction=f'Rename "{old}.txt" to "{new}.txt".',
        config=(
            setup_step("write_file", path=f"{FOLDER}/{old}.txt", content=old + "\n"),
            setup_step("launch", command=["pcmanfm", "-n", FOLDER]),
            place_window("files", box),
            setup_step("wait_color", x=x + width - 60, y=y + height - 60, color="#ffffff"),
        ),
        evaluator={
            "func": "exact_match",
            "result": {"type": "vm_command_line", "command": ["ls", FOLDER]},
            "expected": {"type": "rule", "rules": {"expected": f"{new}.txt\n"}},
            "wait_s": 0.3,
        },
        actions=(press_keys("ctrl", "a"), press_keys("F2"), type_text(new), press_keys("Return"), DONE),
        widgets=({"name": "folder", "x": x + width - 60, "y": y + height - 60},),
    )


def _box(rng: random.Random, width: int, height: int) -> tuple[int, int, int, int]:
    """A window of this size somewhere on the screen."""
    x = rng.randrange(4, SCREEN[0] - width - 12, 4)
    return x, rng.randrange(28, SCREEN[1] - height - 12, 4), width, height


LEVEL_4_FAMILIES = (
    Family("answer", 4, 4, 100, 24, build_answer),
    Family("replace", 4, 6, 100, 24, build_replace),
    Family("rename", 4, 7, 100, 24, build_rename),
)
