"""The groups that are being sampled: those of this step and of the next ones. Rank 0 only.

    step t:  ask for the groups of steps t ... t + max_staleness  ->  wait for those of step t  ->  train

Admission by versions: a group of step s is asked for no earlier than at step s - max_staleness, with the
policy version v of then. Each step raises the version by one at most, so when the group is trained on, no
token of it is older than max_staleness versions; a completion that a sync interrupted goes on with newer
weights. Steps take their groups in the order of the requests, not of finishing, so that slow tasks are not
trained on less. What a resume needs is the first position of the task order that no finished step has used,
and the positions behind it that were used in place of flat groups.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from training.batch.advantages import are_equal
from training.contracts.config import ExperimentConfig
from training.contracts.trainer_state import ExperimentState
from training.contracts.types import Group, Purpose
from training.rollouts.branch_credit import chosen_starts, with_branches
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
    extra_positions: list[int] = field(default_factory=list)
    """Of the tasks of `extra`."""
    position: int = 0
    """In the task order: of the first task that was not requested yet."""
    branches: list[PendingGroups] | None = None
    """Continuations of this step's groups, once asked for; a restart of the engine changes nothing."""

    def __post_init__(self) -> None:
        self.position = self.state.task_cursor

    def next_groups(self) -> list[Group]:
        """The groups of this step, flat ones replaced up to the cap. Raises Interrupted and WeightsLost."""
        self._request_upcoming()
        newest = self.collector.wait(self.pending[0][1])
        groups, rounds, left = list(newest), 0, self.config.algorithm.max_extra_groups
        while wanted := min(left, num_flat(newest)):
            if rounds == len(self.extra):
                positions = self._next_positions(wanted)
                self.extra.append(self._request(self.state.grpo_step, positions))
                self.extra_positions += positions
            newest = self.collector.wait(self.extra[rounds])
            groups += newest
            rounds, left = rounds + 1, left - wanted
        groups = self._with_branches(groups)
        self.pending.popleft()
        self._remember_used()
        return groups

    def cancel(self) -> None:
        """Give up on everything that is being sampled; its tasks come again."""
        for groups in [*(groups for _, groups in self.pending), *self.extra, *(self.branches or ())]:
            self.collector.cancel(groups)
        self.branches = None
        self.pending.clear()
        self.extra.clear()
        self.extra_positions.clear()
        self.position = self.state.task_cursor

    def _with_branches(self, groups: list[Group]) -> list[Group]:
        """The groups with continuations of their members, where the config wants any."""
        if self.config.algorithm.credit != "branches":
            return groups
        if self.branches is None:
            version = self.state.policy_version
            self.branches = [
                self.collector.ask([start.group.task], start.request(self.config, version))
                for start in chosen_starts(groups, self.config)
            ]
        found = [branch for ticket in self.branches for branch in self.collector.wait(ticket)]
        self.branches = None
        return with_branches(groups, found)

    def _request_upcoming(self) -> None:
        algorithm, step = self.config.algorithm, self.state.grpo_step
        last = min(step + algorithm.max_staleness, algorithm.num_steps - 1)
        for later in range(step + len(self.pending), last + 1):
            positions = self._next_positions(algorithm.groups_per_step)
            self.pending.append((positions[0], self._request(later, positions)))

    def _remember_used(self) -> None:
        """Write into the state which positions the step has used that ends."""
        state = self.state
        state.task_cursor = self.pending[0][0] if self.pending else self.position
        used = [*state.used_ahead, *self.extra_positions]
        state.used_ahead = [position for position in used if position >= state.task_cursor]
        self.extra.clear()
        self.extra_positions.clear()

    def _next_positions(self, count: int) -> list[int]:
        """The next `count` positions that no step has used or requested."""
        used = set(self.state.used_ahead)
        found: list[int] = []
        while len(found) < count:
            if self.position not in used:
                found.append(self.position)
            self.position += 1
        return found

    def _request(self, step: int, positions: Sequence[int]) -> PendingGroups:
        """Request groups of the tasks at `positions` for the step after `step` finished ones."""
        request = GroupSpec(
            size=self.config.algorithm.group_size,
            purpose=Purpose.TRAIN,
            step=step + 1,
            temperature=temperature_at(self.config.sampling, step),
            policy_version=self.state.policy_version,
        )
        return self.collector.ask(self.order.take_at(positions), request)


def num_flat(groups: Sequence[Group]) -> int:
    """Groups that teach nothing: their rewards are equal, or fewer than two members were scored."""
    return sum(are_equal([float(one.reward or 0.0) for one in group.scored()]) for group in groups)
