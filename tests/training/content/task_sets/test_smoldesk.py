"""The task set smoldesk: from its seed, splits without a common word, and demonstrations that say nothing."""

import math
import re
from collections import Counter

from training.actions.coordinates import off_screen_error
from training.content.task_sets.smoldesk import DEMONSTRATED, families, family_of, generate
from training.content.task_sets.smoldesk.screens import SCREEN
from training.content.task_sets.smoldesk.words import CHOICE, HELDOUT, TRAIN, Words
from training.content.task_sets.task_family import family_tasks
from training.contracts.types import Action
from training.tasks.supported_by.deskhand import unsupported_reason

TASKS = generate()
NAMES = ("buttons", "fields", "values", "switches", "items", "files", "endings", "programs", "things")


def test_splits_share_no_word_and_numbers_say_their_split():
    for name in NAMES:
        lists = [set(getattr(words, name)) for words in (TRAIN, HELDOUT, CHOICE)]
        assert sum(map(len, lists)) == len(set.union(*lists)), name
    for task in TASKS:
        numbers = [int(number) for number in re.findall(r"\b\d{3,}\b", task.instruction)]
        assert all((number % 7 == 0) == (task.split == "heldout") for number in numbers)


def test_a_third_split_stands_in_for_the_held_out_one():
    def instructions(heldout: Words, split: str) -> list[str]:
        tasks = family_tasks(family_of("form", families.form, 20, 20, heldout))
        return [task.instruction for task in tasks if task.split == split]

    assert instructions(CHOICE, "train") == instructions(HELDOUT, "train")
    assert not set(instructions(CHOICE, "heldout")) & set(instructions(HELDOUT, "heldout"))


def test_a_start_imitates_what_the_recipe_says_and_every_task_can_run():
    ids = Counter(task.task_id.split("/")[2] for task in TASKS if task.family == "demonstrated")
    assert ids == DEMONSTRATED
    assert not [task.task_id for task in TASKS if unsupported_reason(task)]
    for task in TASKS:
        actions = [Action.model_validate(action) for action in task.oracle["actions"]]
        assert len(actions) <= task.max_turns
        assert all(off_screen_error(action, SCREEN) is None for action in actions)
    assert not {task.family for task in TASKS if task.split == "train"} & {"literal", "mixed", "editor"}


def mutual_information(pairs: list[tuple[int, int]]) -> float:
    """In nats, as counted."""
    number, both = len(pairs), Counter(pairs)
    left, right = Counter(a for a, _ in pairs), Counter(b for _, b in pairs)
    return sum(n / number * math.log(n * number / (left[a] * right[b])) for (a, b), n in both.items())


def test_an_uninformative_demonstration_says_nothing_of_its_instruction():
    def places(family: str) -> list[tuple[int, int]]:
        """Place of the named and of the clicked widget on the screen, in thirds."""
        found = []
        for task in TASKS:
            if task.family == family and task.split == "train":
                listed = re.findall(r'"name": "([^"]+)"', task.config[0]["parameters"]["content"])
                ((_, clicked),) = task.evaluator["expected"]["rules"]["expect"][0]["ref"]
                named = task.instruction.removeprefix("Click ").removesuffix(".")
                found.append(tuple(3 * listed.index(name) // len(listed) for name in (named, clicked)))
        return found

    assert mutual_information(places("press")) > 1.0
    # By chance alone: (3 - 1) (3 - 1) / (2 * 300) = 0.007 nats.
    assert mutual_information(places("uninformative")) < 0.02
