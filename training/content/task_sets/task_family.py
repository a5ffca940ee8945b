"""Families of generated problems, their numbered tasks, and the words that instructions use."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from training.contracts.types import Action, Task

SCREEN = (512, 384)
COLOURS = {
    "red": "#d92b2b",
    "green": "#2fa84f",
    "blue": "#2458d6",
    "yellow": "#f4d21f",
    "orange": "#f58a1f",
    "purple": "#8f3fc9",
    "white": "#fafafa",
    "black": "#1d1d1f",
}
NOUNS = (
    "fox", "owl", "cat", "dog", "hen", "bee", "ant", "bat", "cow", "pig", "elk", "emu",
    "fish", "frog", "bird", "bear", "wolf", "deer", "goat", "duck", "tree", "leaf", "rock", "moon",
)  # fmt: skip
Split = Literal["train", "heldout"]


@dataclass(frozen=True, slots=True)
class Family:
    """One generator and how many tasks of each split it gives."""

    name: str
    level: int
    max_turns: int
    num_train: int
    num_heldout: int
    build: Callable[[random.Random, Split], Problem]


@dataclass(frozen=True, slots=True)
class Problem:
    """What a generator makes; `Task` adds the name and the split."""

    instruction: str
    config: tuple[dict[str, Any], ...]
    evaluator: dict[str, Any]
    actions: tuple[Action, ...]
    """The oracle's whole solution."""
    widgets: tuple[dict[str, Any], ...] = ()
    """[{name, x, y}]: centres in screen pixels."""

    def key(self) -> str:
        """Two problems with one key are the same problem."""
        return json.dumps([self.instruction, self.config], sort_keys=True)


def family_tasks(
    family: Family, seed: int = 0, *, task_set: str = "first-desk", screen: tuple[int, int] = SCREEN
) -> Iterator[Task]:
    """Tasks of one generator, numbered through both splits; one named A/B gives tasks of family A."""
    seen: set[str] = set()
    for number in range(family.num_train + family.num_heldout):
        split: Split = "train" if number < family.num_train else "heldout"
        problem = _unseen(family, seed, number, split, seen)
        yield Task(
            task_id=f"{task_set}/{family.name}/{number:04d}",
            instruction=problem.instruction,
            family=family.name.split("/")[0],
            level=family.level,
            split=split,
            config=problem.config,
            evaluator=problem.evaluator,
            screen=screen,
            oracle={
                "actions": [
                    action.model_dump(mode="json", exclude_defaults=True) for action in problem.actions
                ],
                "widgets": list(problem.widgets),
            },
            max_turns=family.max_turns,
        )


def _unseen(family: Family, seed: int, number: int, split: Split, seen: set[str]) -> Problem:
    """The first problem of this number's stream that has not occurred."""
    rng = random.Random(f"{seed}/{family.name}/{number}")
    while True:
        problem = family.build(rng, split)
        if problem.key() not in seen:
            seen.add(problem.key())
            return problem


def unseen_pairs(left: Sequence[str], right: Sequence[str], split: Split) -> list[tuple[str, str]]:
    """Pairs of a split: every eighth is held out, and every word occurs in both splits."""
    return [
        (first, second)
        for (i, first), (j, second) in itertools.product(enumerate(left), enumerate(right))
        if first != second and ((i + j) % 8 == 0) == (split == "heldout")
    ]
