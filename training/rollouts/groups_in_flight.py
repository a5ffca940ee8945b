"""The groups that are being sampled: those of this step and of the next ones. Rank 0 only.

    step t:  ask for the groups of steps t ... t + max_staleness  ->  wait for those of step t  ->  train

Admission by versions: a group of step s is asked for no earlier than at step s - max_staleness, with the
policy version v of then. Each step raises the version by one at most, so when the group is trained on, no
token of it is older than max_staleness versions; a completion that a sync interrupted goes on with newer
weights. Steps take their groups in the order of the requests, not of finishing, so that slow tasks are not
trained on less. What a resume needs is one number: the first position of the task order that no finished
step has used.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from training.contracts.config import ExperimentConfig
from training.contracts.trainer_state import ExperimentState
from training.contracts.types import Group, Purpose
from training.rollouts.group_collector import GroupCollector, GroupSpec, PendingGroups
from training.rollouts.task_order import TaskOrder
from training.rollouts.temperature_schedule import temperature_at


@dataclass(slots=True, kw_only=True)
class GroupsInFlight:
    """Requested groups of this step and the next ones, by step."""

    collector: GroupCollector
    order: TaskOrder
    config: ExperimentConfig
    state: ExperimentState
    """Read for step and version; its `task_cursor` is written."""
    pending: deque[tuple[int, PendingGroups]] = field(default_factory=deque)
    """(first position of their tasks, groups) of this step and the next ones, in order."""
    extra: list[PendingGroups] = field(default_factory=list)
    """Asked for in place of this step's flat groups, in order; a restart of the engine changes nothing."""
    position: int = 0
    """In the task order: of the first task that was not requested yet."""

    def __post_init__(self) -> None:
        self.position = self.state.task_cursor

    def next_groups(self) -> list[Group]:
        """The groups of this step, flat ones replaced up to the cap. Raises Interrupted and WeightsLost."""
        self._request_upcoming()
        newest = self.collector.wait(self.pending[0][1])
        groups, rounds, left = list(newest), 0, self.config.algorithm.max_extra_groups
        while wanted := min(left, num_flat(newest)):
            if rounds == len(self.extra):
                self.extra.append(self._request(self.state.grpo_step, wanted))
            newest = self.collector.wait(self.extra[rounds])
            groups += newest
            rounds, left = rounds + 1, left - wanted
        self.pending.popleft()
        self.extra.clear()
        self.state.task_cursor = self.pending[0][0] if self.pending else self.position
        return groups

    def cancel(self) -> None:
        """Give up on everything that is being sampled; its tasks come again."""
        for groups in [*(groups for _, groups in self.pending), *self.extra]:
            self.collector.cancel(groups)
        self.pending.clear()
        self.extra.clear()
        self.position = self.state.task_cursor

    def _request_upcoming(self) -> None:
        algorithm, step = self.config.algorithm, self.state.grpo_step
        last = min(step + algorithm.max_staleness, algorithm.num_steps - 1)
        for later in range(step + len(self.pending), last + 1):
            start = self.position
            self.pending.append((start, self._request(later, algorithm.groups_per_step)))

    def _request(self, step: int, count: int) -> PendingGroups:
        """Request the next `count` groups of the task order for the step after `step` finished ones."""
        request = GroupSpec(
            size=self.config.algorithm.group_size,
            purpose=Purpose.TRAIN,
            step=step + 1,
            temperature=temperature_at(self.config.sampling, step),
            policy_version=self.state.policy_version,
        )
        tasks = self.order.take(self.position, count)
        self.position += count
        return self.collector.ask(tasks, request)


def num_flat(groups: Sequence[Group]) -> int:
    """Groups that teach nothing: their rewards are equal, or fewer than two members were scored."""
    return sum(len({member.reward for member in group.scored()}) < 2 for group in groups)
