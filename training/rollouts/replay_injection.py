"""Injection of curated successes into groups in which every member failed.

A failed group (every raw task score below `replay.threshold`) gives ONE failed member's
place to the best usable entry, so the group keeps its size and the advantages are computed
again over its real members. Two kinds of entries:
- sampled by a policy that recorded its behaviour logprobs: enters the policy-gradient loss
  with the importance ratio against those logprobs;
- human or oracle: no policy sampled it, so it has no logprobs and enters as a likelihood
  (NLL) term with its own weight, and counts in the group's mean like any member.
Caps: share of the batch, uses of one entry, age of the entry's policy.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from training.batch.samples import has_behaviour_logprobs
from training.contracts.config import ReplayConfig
from training.contracts.coordinator import ReplayCandidate
from training.contracts.trainer_reports import ReplayUse
from training.contracts.types import Group, Trajectory

Candidates = Callable[[str], Sequence[ReplayCandidate]]
"""task_id -> entries of that task, best first"""


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
    replaced_trajectory_id: int
    policy_age: int | None
    as_likelihood: bool

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


def has_failed(group: Group, threshold: float) -> bool:
    """True when the group is usable and every raw task score is below `threshold`."""
    members = group.scored()
    return len(members) >= 2 and all((member.score or 0.0) < threshold for member in members)


def inject(
    groups: Sequence[Group],
    candidates: Candidates,
    state: ReplayState,
    config: ReplayConfig,
    policy_version: int,
) -> tuple[list[Group], list[Injection]]:
    """The groups with their injections, and what was injected. Counts the uses in `state`."""
    allowed = math.floor(config.max_share * sum(len(group.scored()) for group in groups))
    result: list[Group] = []
    injections: list[Injection] = []
    for group in groups:
        entry = None
        if len(injections) < allowed and has_failed(group, config.threshold):
            # An entry enters a batch once: two copies would share one trajectory id.
            taken = {injection.entry_id for injection in injections}
            offered = [one for one in candidates(group.task.task_id) if one.entry_id not in taken]
            entry = best_entry(offered, group, state, config, policy_version)
        if entry is None:
            result.append(group)
            continue
        changed, injection = _replace_one(group, entry, policy_version)
        state.uses[entry.entry_id] += 1
        result.append(changed)
        injections.append(injection)
    return result, injections


def best_entry(
    entries: Sequence[ReplayCandidate],
    group: Group,
    state: ReplayState,
    config: ReplayConfig,
    policy_version: int,
) -> ReplayCandidate | None:
    """The first usable entry; gold ones first when the config says so."""
    usable = [
        entry
        for entry in entries
        if is_usable(entry, config, policy_version)
        and state.uses[entry.entry_id] < config.max_uses
        and entry.trajectory.task.task_id == group.task.task_id
    ]
    # A used entry steps behind its unused peers, so that one success does not become the target.
    return min(usable, key=lambda entry: (_rank(entry, config), state.uses[entry.entry_id]), default=None)


def _rank(entry: ReplayCandidate, config: ReplayConfig) -> int:
    return int(config.gold_first and entry.label != "gold")


def is_usable(entry: ReplayCandidate, config: ReplayConfig, policy_version: int) -> bool:
    """True for a re-scored success of the train split that is young enough and can be rendered."""
    trajectory = entry.trajectory
    if trajectory.reward is None or trajectory.score is None or trajectory.score < config.threshold:
        return False
    if trajectory.task.split != "train" or not trajectory.turns:
        return False
    age = policy_age(entry, policy_version)
    return age is None or age <= config.max_policy_age


def policy_age(entry: ReplayCandidate, policy_version: int) -> int | None:
    """Policy versions between recording and now; None for entries that no policy sampled."""
    if not has_behaviour_logprobs(entry.trajectory):
        return None
    if entry.recorded_policy_age is not None:
        return entry.recorded_policy_age
    return None if entry.policy_version is None else max(0, policy_version - entry.policy_version)


def _replace_one(group: Group, entry: ReplayCandidate, policy_version: int) -> tuple[Group, Injection]:
    """The group with its worst member (lowest reward, then latest) replaced by the entry."""
    worst = min(group.scored(), key=lambda member: (member.reward, -member.trajectory_id))
    newcomer = entry.trajectory.model_copy(
        update={
            "group_id": group.group_id,
            "replay_entry_id": entry.entry_id,
            "replay_label": entry.label,
        }
    )
    members: tuple[Trajectory, ...] = tuple(newcomer if m is worst else m for m in group.trajectories)
    injection = Injection(
        entry_id=entry.entry_id,
        group_id=group.group_id,
        trajectory_id=newcomer.trajectory_id,
        replaced_trajectory_id=worst.trajectory_id,
        policy_age=policy_age(entry, policy_version),
        as_likelihood=not has_behaviour_logprobs(entry.trajectory),
    )
    return group.model_copy(update={"trajectories": members}), injection
