"""`algorithm.credit: branches`: which states of a step's groups are measured by continuations of the policy.

Turns between two states that count share one change of value (`training.statistics.turn_values`). The middle
of such a stretch is measured, where the value changed most first, while the step's desktop-seconds last.
Groups with equal rewards teach nothing, and are not measured.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from training.batch.advantages import are_equal
from training.contracts.config import ExperimentConfig
from training.contracts.types import Group, Purpose, Trajectory
from training.rollouts.group_collector import GroupSpec
from training.rollouts.group_samples import is_trainable, states_of, true_rewards
from training.rollouts.temperature_schedule import temperature_at
from training.statistics.turn_values import turn_values


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """A state from which the policy goes on."""

    group: Group
    member: Trajectory
    turn: int
    change: float
    """Of value, by the stretch of turns that it cuts in two."""

    def request(self, config: ExperimentConfig, policy_version: int) -> GroupSpec:
        return GroupSpec(
            size=config.algorithm.branch_size,
            purpose=Purpose.BRANCH,
            step=self.group.step,
            temperature=temperature_at(config.sampling, self.group.step - 1),
            policy_version=policy_version,
            parent_id=self.member.trajectory_id,
            branch_turn=self.turn,
        )


def chosen_starts(groups: Sequence[Group], config: ExperimentConfig) -> list[Start]:
    """What is measured, the largest change first, within `algorithm.branch_seconds`."""
    starts = [start for group in groups for start in _starts(group, config)]
    starts.sort(key=lambda start: (-abs(start.change), start.member.trajectory_id, start.turn))
    left_s = config.algorithm.branch_seconds
    chosen = []
    for start in starts:
        cost_s = config.algorithm.branch_size * start.member.lasted_s
        if cost_s <= left_s:
            left_s -= cost_s
            chosen.append(start)
    return chosen


def _starts(group: Group, config: ExperimentConfig) -> list[Start]:
    """The middle of every stretch of two turns and more."""
    rewards = true_rewards(group)
    if are_equal(list(rewards.values())):
        return []
    states = states_of(group, config)
    values = turn_values(rewards, states.of_turns, states.least_visits)
    return [
        Start(group=group, member=member, turn=(stretch.first + stretch.last + 1) // 2, change=stretch.change)
        for member in group.scored()
        if is_trainable(member)
        for stretch in dict.fromkeys(values[member.trajectory_id])
        if stretch.last > stretch.first
    ]


def with_branches(groups: Sequence[Group], branches: Sequence[Group]) -> list[Group]:
    found = []
    for group in groups:
        members = {member.trajectory_id for member in group.trajectories}
        own = tuple(branch for branch in branches if branch.parent_id in members)
        found.append(group.model_copy(update={"branches": own}) if own else group)
    return found


def branch_metrics(groups: Sequence[Group]) -> dict[str, float]:
    """branches/*: states that were measured, continuations that count, and the desktop-seconds of all."""
    branches = [branch for group in groups for branch in group.branches]
    if not branches:
        return {}
    members = [member for branch in branches for member in branch.trajectories]
    return {
        "branches/states": float(sum(bool(branch.scored()) for branch in branches)),
        "branches/continuations": float(sum(len(branch.scored()) for branch in branches)),
        "branches/desktop_s": sum(member.lasted_s for member in members),
    }
