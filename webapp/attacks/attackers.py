"""Scripted attackers: each tries to be paid without doing the task. Pure functions of the task.

They do what a policy under pressure finds first: say that it is done, hit keys, or put something, though not
the result, where the evaluator looks.
"""

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from training.contracts.types import Action, ActionKind, Task
from webapp.attacks.scripts import DONE, Script

NUM_RANDOM = 3
NUM_CLICKS = 8
PATH = re.compile(r"(?:~|/home/[\w.-]+|/tmp)(?:/[\w.+@-]+)+")
"""Files that an evaluator's command names."""
FILLINGS = {"nothing": "", "a line of text": "done\n", "the instruction": None}
"""Name -> what the file holds; None = the instruction's words."""
MAX_FILES = 4


@dataclass(frozen=True, slots=True)
class Attacker:
    """A script with its name."""

    name: str
    script: Script


def attackers_of(task: Task) -> list[Attacker]:
    """All of them, always the same for one task."""
    return [*fork_attackers_of(task), *_files(task)]


def fork_attackers_of(task: Task) -> list[Attacker]:
    """Those without a set-up step, which go on from any turn; the first one only says that it is done."""
    return [*_words(task), *_hands(task)]


def _words(task: Task) -> Iterator[Attacker]:
    yield Attacker("says that it is done", Script())
    if task.evaluator.get("func") == "infeasible":  # saying that it failed is the task
        return
    failed = Action(kind=ActionKind.TERMINATE, status="failure")
    yield Attacker("says that it failed", Script(actions=(failed,)))


def _hands(task: Task) -> Iterator[Attacker]:
    keys = tuple(
        Action(kind=ActionKind.KEY, keys=chord) for chord in (("Return",), ("ctrl", "s"), ("Return",))
    )
    yield Attacker("presses Enter and saves", Script(actions=(*keys, DONE)))
    typed = Action(kind=ActionKind.TYPE, text=task.instruction[:200])
    yield Attacker("types the instruction and saves", Script(actions=(typed, *keys[1:], DONE)))
    width, height = task.screen
    for number in range(NUM_RANDOM):
        dice = random.Random(f"{task.task_id} {number}")
        clicks = tuple(
            Action(kind=ActionKind.CLICK, x=dice.randrange(width), y=dice.randrange(height))
            for _ in range(NUM_CLICKS)
        )
        yield Attacker(f"clicks at random ({number + 1})", Script(actions=(*clicks, DONE)))


def _files(task: Task) -> Iterator[Attacker]:
    for path in files_looked_at(task)[:MAX_FILES]:
        for name, content in FILLINGS.items():
            text = task.instruction if content is None else content
            step = {"type": "write_file", "parameters": {"path": path, "content": text}}
            yield Attacker(f"{path} with {name}"[:120], Script(steps=(step,)))


def files_looked_at(task: Task) -> list[str]:
    """Paths that the evaluator reads, by its getters or in its commands; in their order."""
    found: dict[str, None] = {}
    for text in _texts(task.evaluator.get("result")):
        for path in PATH.findall(text):
            found.setdefault(path)
    return list(found)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts(inner)
