"""The task set smoldesk: short screens of real widgets, for a language model that reads them as text.

    literal   the instruction names each action          copy     from one page into another, 7 turns
    form      fill in a field, press a button            mixed    form and toggle in one, never trained
    form8     eight fields in ten turns, graded          press    one widget is named
    toggle    two switches as they shall be              editor   a text in mousepad, never trained
    pick      the row with the least or most             demonstrated, uninformative   what starts imitate
    rename    a file of a list

Held-out tasks have other words, numbers divisible by 7 and other grids. `generate_choice` has the same train
tasks and a third split instead, for choosing rates and steps, so that held-out tasks stay unseen.
"""

import random
from collections.abc import Callable
from functools import partial

from training.content.task_sets.smoldesk import families
from training.content.task_sets.smoldesk.screens import SCREEN, Desk
from training.content.task_sets.smoldesk.words import CHOICE, HELDOUT, TRAIN, Words
from training.content.task_sets.task_family import Family, Problem, Split, family_tasks
from training.contracts.types import Task

Builder = Callable[[Desk], Problem]
MAX_TURNS = {"form8": 12}
"""Of the others 8."""
NUM_TRAIN, NUM_HELDOUT = 240, 100
HELD_OUT_ONLY: dict[str, Builder] = {
    "literal": families.literal,
    "mixed": families.mixed,
    "editor": families.editor,
}
TRAINED: dict[str, Builder] = {
    name: getattr(families, name) for name in ("form", "form8", "toggle", "pick", "rename", "copy", "press")
}
DEMONSTRATED = {"literal": 200, "form": 6, "pick": 4, "toggle": 4, "rename": 14}
"""Family -> demonstrations of the demonstrated start, all of one family `demonstrated`."""
NUM_UNINFORMATIVE = 300


def generate(seed: int = 0) -> list[Task]:
    return _generate("smoldesk", HELDOUT, seed)


def generate_choice(seed: int = 0) -> list[Task]:
    """The same with other held-out tasks."""
    return _generate("smoldesk-choice", CHOICE, seed)


def _generate(name: str, heldout: Words, seed: int) -> list[Task]:
    rows = [family_of(one, build, NUM_TRAIN, NUM_HELDOUT, heldout) for one, build in TRAINED.items()]
    rows += [family_of(one, build, 0, NUM_HELDOUT, heldout) for one, build in HELD_OUT_ONLY.items()]
    rows += [
        family_of(f"demonstrated/{one}", (TRAINED | HELD_OUT_ONLY)[one], count, 0, heldout)
        for one, count in DEMONSTRATED.items()
    ]
    rows.append(family_of("uninformative", families.uninformative, NUM_UNINFORMATIVE, 0, heldout))
    return [task for row in rows for task in family_tasks(row, seed, task_set=name, screen=SCREEN)]


def family_of(name: str, build: Builder, num_train: int, num_heldout: int, heldout: Words) -> Family:
    """A family whose held-out tasks have these words."""
    return Family(name, 1, MAX_TURNS.get(name, 8), num_train, num_heldout, partial(_build, build, heldout))


def _build(build: Builder, heldout: Words, rng: random.Random, split: Split) -> Problem:
    is_train = split == "train"
    return build(Desk(rng=rng, words=TRAIN if is_train else heldout, is_train=is_train))
