"""Injection of curated successes into groups in which every member failed.

A failed group (every task score that counts below `replay.threshold`) gives ONE failed member's
place to the best usable entry, so the group keeps its size and the advantages are computed
again over its real members. `training.rollouts.replay_admission` decides between two kinds:
- as a policy sampled it: enters the policy-gradient loss with the importance ratio against the
  recorded behaviour logprobs;
- as a demonstration (a person's, an oracle's, or rendered again): it has no logprobs and enters as
  a likelihood (NLL) term with its own weight, and counts in the group's mean like any member. With
  `injection: advantage` that weight is its bounded advantage, so it is a policy gradient at ratio 1.
With `injection: likelihood` the entry is imitated beside its group, which stays as it is.
`sft_share` imitates entries beside the groups that did not fail, so that what they know stays.
Caps: share of the batch and of a family, uses of one entry, age of the entry's policy.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from training.batch.samples import has_behaviour_logprobs
from training.contracts.config import ReplayConfig
from training.contracts.coordinator import ReplayCandidate
from training.contracts.outcome import SuccessRule
from training.contracts.trainer_reports import ReplayUse
from training.contracts.types import Group, Trajectory
from training.rewards.success_rule import counted_score
from training.rollouts.replay_room import ReplayRoom

Candidates = Callable[[str], Sequence[ReplayCandidate]]
"""task_id -> entries of that task, best first"""
Admit = Callable[[ReplayCandidate], ReplayCandidate | None]
"""An entry -> the form in which it enters; None = it cannot."""


@dataclass(slots=True, kw_only=True)
class ReplayState:
    """How often each entry was used in this experiment; saved with every checkpoint."""

    uses: Counter[int] = field(default_factory=Counter)
    """entry_id -> uses."""

    def to_json(self) -> dict[str, int]:
        return {str(entry): count for entry, count in self.uses.items()}

    @classmethod
    def from_json(cls, values: dict[str, int]) -> ReplayState:
        return cls(uses=Counter({int(entry): count for entry, count in values.items()}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Injection:
    """One entry in one group."""

    entry_id: int
    group_id: int
    trajectory_id: int
    """Of the entry's trajectory."""
    replaced_trajectory_id: int | None
    """None = it stands beside the group."""
    policy_age: int | None
    as_likelihood: bool
    beside: Trajectory | None = None
    """The entry's, where no member has it."""

    def report(self, step: int, advantage: float, importance_ratio: float | None) -> ReplayUse:
        """The line for the coordinator."""
        return ReplayUse(
            entry_id=self.entry_id,
            group_id=self.group_id,
            step=step,
            replaced_trajectory_id=self.replaced_trajectory_id,
            policy_age=self.policy_age,
            as_likelihood=self.as_likelihood,
            advantage=advantage,
            importance_ratio=None if self.as_likelihood else importance_ratio,
        )


def has_failed(group: Group, threshold: float, rule: SuccessRule) -> bool:
    """True when the group is usable and every task score that `rule` counts is below `threshold`."""
    members = group.scored()
    return len(members) >= 2 and all(counted_score(member, rule) < threshold for member in members)


def inject(
    groups: Sequence[Group],
    candidates: Candidates,
    admit: Admit,
    state: ReplayState,
    config: ReplayConfig,
    *,
    rule: SuccessRule,
    trained_groups: Collection[int],
) -> tuple[list[Group], list[Injection]]:
    """The groups with their injections, and what was injected. Counts the uses in `state`.

    `rule`: which scores count; `trained_groups`: ids of the groups that enter the loss without an injection.
    """
    room = ReplayRoom(groups, trained_groups, config)
    result: list[Group] = []
    injections: list[Injection] = []

    def entry_for(group: Group) -> ReplayCandidate | None:
        # An entry enters a batch once: two copies would share one trajectory id.
        taken = {injection.entry_id for injection in injections}
        offered = [one for one in candidates(group.task.task_id) if one.entry_id not in taken]
        return best_entry(offered, admit, group, state, config)

    def take(injection: Injection) -> None:
        state.uses[injection.entry_id] += 1
        injections.append(injection)

    for group in groups:
        changed = group
        if has_failed(group, config.threshold, rule) and room.has_room(group) and (entry := entry_for(group)):
            if config.injection == "likelihood":
                take(_beside(group, entry))
            else:
                changed, injection = _replace_one(group, entry)
                take(injection)
            room.count(group)
        result.append(changed)
    for group in groups:
        if not room.has_room_beside():
            break
        if not has_failed(group, config.threshold, rule) and (entry := entry_for(group)):
            take(_beside(group, entry))
            room.count_beside()
    return result, injections


def best_entry(
    entries: Sequence[ReplayCandidate],
    admit: Admit,
    group: Group,
    state: ReplayState,
    config: ReplayConfig,
) -> ReplayCandidate | None:
    """The first usable entry that is admitted, as it enters; gold ones first when the config says so."""
    usable = [
        entry
        for entry in entries
        if is_usable(entry, config)
        and state.uses[entry.entry_id] < config.max_uses
        and entry.trajectory.task.task_id == group.task.task_id
    ]
    # A used entry steps behind its unused peers, so that one success does not become the target.
    usable.sort(key=lambda entry: (_rank(entry, config), state.uses[entry.entry_id]))
    return next((admitted for entry in usable if (admitted := admit(entry)) is not None), None)


def _rank(entry: ReplayCandidate, config: ReplayConfig) -> int:
    return int(config.gold_first and entry.label != "gold")


def is_usable(entry: ReplayCandidate, config: ReplayConfig) -> bool:
    """True for a re-scored success of the train split."""
    trajectory = entry.trajectory
    if trajectory.reward is None or trajectory.score is None or trajectory.score < config.threshold:
        return False
    return trajectory.task.split == "train" and bool(trajectory.turns)


def _replace_one(group: Group, entry: ReplayCandidate) -> tuple[Group, Injection]:
    """The group with its worst member (lowest reward, then latest) replaced by the entry."""
    worst = min(group.scored(), key=lambda member: (member.reward, -member.trajectory_id))
    newcomer = _newcomer(group, entry)
    members: tuple[Trajectory, ...] = tuple(newcomer if m is worst else m for m in group.trajectories)
    as_likelihood = not has_behaviour_logprobs(entry.trajectory)
    injection = Injection(
        entry_id=entry.entry_id,
        group_id=group.group_id,
        trajectory_id=newcomer.trajectory_id,
        replaced_trajectory_id=worst.trajectory_id,
        policy_age=None if as_likelihood else entry.policy_age,
        as_likelihood=as_likelihood,
    )
    return group.model_copy(update={"trajectories": members}), injection


def _beside(group: Group, entry: ReplayCandidate) -> Injection:
    """The entry imitated, whatever sampled it; no member is compared with it."""
    newcomer = _newcomer(group, entry)
    return Injection(
        entry_id=entry.entry_id,
        group_id=group.group_id,
        trajectory_id=newcomer.trajectory_id,
        replaced_trajectory_id=None,
        policy_age=None,
        as_likelihood=True,
        beside=newcomer,
    )


def _newcomer(group: Group, entry: ReplayCandidate) -> Trajectory:
    return entry.trajectory.model_copy(
        update={
            "group_id": group.group_id,
            "replay_entry_id": entry.entry_id,
            "replay_label": entry.label,
        }
    )
