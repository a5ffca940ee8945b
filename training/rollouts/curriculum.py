"""Curriculum by solve rate: tasks that are solved about half of the time come more often.

    q_task = (wins + 1) / (trials + 2)          over past groups, older ones fading by `DECAY` per visit
    weight = 4 q (1 - q)                        1 at q = 1/2, near 0 for what always or never works
    with probability `tasks.curriculum_floor` the choice is uniform instead

A group at q near 0 or 1 has equal rewards and teaches nothing; the variance of its rewards, and so the
size of its gradient, grows with q (1 - q). So a win is what the update tells from the rest (`success_rule`).
Where rewards pay nothing at a limit, a task that is always reached and ended half of the time teaches most;
where they pay the state, it teaches nothing. An unseen task has q = 1/2 and is tried soon. Families keep
the shares of `tasks.family_shares`. A choice depends only on (seed, position, solve rates so far), and the
rates are saved with every checkpoint.
"""

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from training.contracts.config import FamilyShares
from training.contracts.outcome import SuccessRule, succeeded
from training.contracts.types import Group, Task
from training.rewards.success_rule import counted_score
from training.rollouts.task_order import TaskOrder

DECAY = 0.7
"""What older trials of a task are multiplied with at each visit: the policy that made them is gone."""


@dataclass(slots=True)
class SolveRates:
    """Faded wins and trials of every visited task."""

    counts: dict[str, list[float]] = field(default_factory=dict)
    """task_id -> [wins, trials]; JSON as it is."""

    def record(self, groups: Iterable[Group], rule: SuccessRule) -> None:
        """Take the groups of a step in; `rule`: what is a win."""
        for group in groups:
            scored = group.scored()
            wins, trials = self.counts.get(group.task.task_id, [0.0, 0.0])
            new_wins = sum(succeeded(counted_score(member, rule)) for member in scored)
            self.counts[group.task.task_id] = [DECAY * wins + new_wins, DECAY * trials + len(scored)]

    def weight(self, task_id: str) -> float:
        """Sampling weight of the task within its family, in (0, 1]."""
        wins, trials = self.counts.get(task_id, [0.0, 0.0])
        rate = (wins + 1) / (trials + 2)
        return 4 * rate * (1 - rate)


class SolveRateCurriculum(TaskOrder):
    """Chooses within each family by weight; tasks that are taken together differ while it has enough."""

    def __init__(
        self,
        tasks: Sequence[Task],
        seed: int,
        rates: SolveRates,
        floor: float,
        *,
        shares: FamilyShares = "equal",
    ) -> None:
        super().__init__(tasks, seed, shares=shares)
        self.rates = rates
        self.floor = floor

    def take_at(self, positions: Sequence[int]) -> list[Task]:
        chosen: list[Task] = []
        for place in positions:
            taken = {task.task_id for task in chosen}
            chosen.append(self._choose(place, taken))
        return chosen

    def _choose(self, position: int, taken: set[str]) -> Task:
        family = self.names[position % len(self.names)]
        tasks = self.families[family]
        free = [task for task in tasks if task.task_id not in taken] or tasks
        rng = random.Random(f"{self.seed}/solve-rate/{position}")
        if rng.random() < self.floor:
            return rng.choice(free)
        return rng.choices(free, weights=[self.rates.weight(task.task_id) for task in free])[0]
