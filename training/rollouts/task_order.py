"""Which tasks a step practises: seeded, balanced over families, resumable from one integer.

Position p belongs to family p mod F; within a family every task comes once per pass, in an
order that depends only on (seed, family, pass). So the cursor is the whole state. A family's share is then
the same whatever its size. With shares by size all tasks are one family: each comes as often as any other.
"""

import random
from collections.abc import Sequence

from training.contracts.config import FamilyShares
from training.contracts.types import Task


class TaskOrder:
    """An endless order over tasks."""

    def __init__(self, tasks: Sequence[Task], seed: int, *, shares: FamilyShares = "equal") -> None:
        if not tasks:
            raise ValueError(
                "tasks.task_set: it has no supported task in the train split (check tasks.families)"
            )
        self.seed = seed
        self.families: dict[str, list[Task]] = {}
        for task in tasks:
            self.families.setdefault(task.family if shares == "equal" else "", []).append(task)
        self.names = sorted(self.families)

    def at(self, position: int) -> Task:
        family = self.names[position % len(self.names)]
        tasks = self.families[family]
        visit, place = divmod(position // len(self.names), len(tasks))
        order = list(range(len(tasks)))
        random.Random(f"{self.seed}/{family}/{visit}").shuffle(order)
        return tasks[order[place]]

    def take(self, position: int, count: int) -> list[Task]:
        """The next `count` tasks from a position."""
        return self.take_at(range(position, position + count))

    def take_at(self, positions: Sequence[int]) -> list[Task]:
        return [self.at(position) for position in positions]


def evaluation_tasks(tasks: Sequence[Task], count: int) -> list[Task]:
    """`count` tasks for every evaluation of every experiment: the same ones, families in turn."""
    if not tasks:
        raise ValueError(
            "tasks.task_set: it has no supported task in the held-out split; set evaluation.num_tasks: 0"
        )
    order = TaskOrder(tasks, seed=0)
    chosen: dict[str, Task] = {}
    # Bounded: after this many positions every family has been passed at least once.
    for position in range(len(tasks) * len(order.names)):
        if len(chosen) >= count:
            break
        task = order.at(position)
        chosen.setdefault(task.task_id, task)
    return list(chosen.values())
