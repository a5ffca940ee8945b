"""Held-out tasks that are practised, too: seen in what is stored, and refused in what is written."""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator

from training.contracts.types import Task
from webapp.experiments.models import TaskSet


def leaked(task_set: TaskSet) -> dict[int, list[int]]:
    """Held-out task -> train tasks of its set with the same instruction, set-up and evaluator."""
    return leaked_and_families(task_set)[0]


def leaked_and_families(task_set: TaskSet) -> tuple[dict[int, list[int]], list[str]]:
    """The same, and the names of the set's families; one query."""
    columns = task_set.tasks.current().values_list(
        "pk", "split", "family", "instruction", "spec__config", "spec__evaluator"
    )
    train: dict[str, list[int]] = defaultdict(list)
    heldout: list[tuple[int, str]] = []
    families = set()
    for pk, split, family, *problem in columns:
        families.add(family)
        key = json.dumps([_words(problem[0]), *problem[1:]], sort_keys=True)
        if split == "train":
            train[key].append(pk)
        else:
            heldout.append((pk, key))
    return {pk: train[key] for pk, key in heldout if key in train}, sorted(families)


def leaking(task_set: TaskSet | None, tasks: Iterable[Task]) -> Iterator[tuple[Task, str]]:
    """(task, why) of tasks whose instruction the other split has, in the set or among themselves.

    What people and uploads bring in is judged by the instruction alone: a policy that has practised it has
    seen the question, whatever the desktop looked like.
    """
    fresh = list(tasks)
    by_words: dict[str, dict[str, str]] = defaultdict(dict)
    if task_set is not None:
        stay = task_set.tasks.current().exclude(task_id__in=[task.task_id for task in fresh])
        for task_id, split, instruction in stay.values_list("task_id", "split", "instruction"):
            by_words[_words(instruction)].setdefault(split, task_id)
    for task in fresh:
        there = by_words[_words(task.instruction)]
        other = "train" if task.split == "heldout" else "heldout"
        if other in there:
            yield task, f"its instruction is that of {there[other]} in split {other}; give both one split"
        else:
            there.setdefault(task.split, task.task_id)


def _words(instruction: str) -> str:
    return " ".join(instruction.split()).casefold()
