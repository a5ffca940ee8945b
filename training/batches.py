"""Groups of a step become the batch of its update, with replay injected. Rank 0 only, torch-free.

groups -> injection -> advantages (>= 2 scored members) -> samples
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from training.advantages import GroupAdvantages, group_advantages
from training.config import ExperimentConfig
from training.metrics import rollout_metrics
from training.rendering import Renderer
from training.replay import Candidates, Injection, ReplayState, inject
from training.samples import Sample, build_sample, has_behaviour_logprobs
from training.staleness import MAX_STALENESS, largest_staleness, staleness
from training.types import Group, MemberUpdate, ReplayUse, Trajectory


@dataclass(slots=True, kw_only=True)
class Batch:
    """What one step trains on and reports."""

    samples: list[Sample]
    advantages: dict[int, float]
    """trajectory_id -> advantage, members of zero-variance groups included."""
    injections: list[Injection]
    metrics: dict[str, float]
    groups: list[Group] = field(default_factory=list)
    """As the desktops returned them."""

    def member_updates(self, per_sequence: dict[int, tuple[float, float]]) -> list[MemberUpdate]:
        """For every member that had a group to compare with, injected entries apart."""
        injected = {injection.trajectory_id for injection in self.injections}
        return [
            MemberUpdate(
                trajectory_id=key,
                advantage=advantage,
                policy_logprob_gap=per_sequence[key][1] if key in per_sequence else None,
            )
            for key, advantage in self.advantages.items()
            if key not in injected
        ]

    def replay_uses(self, step: int, per_sequence: dict[int, tuple[float, float]]) -> list[ReplayUse]:
        """For every injected entry."""
        uses = []
        for one in self.injections:
            ratio = per_sequence.get(one.trajectory_id, (None, None))[0]
            uses.append(one.report(step, self.advantages[one.trajectory_id], ratio))
        return uses


def prepare_batch(
    groups: Sequence[Group],
    renderer: Renderer,
    config: ExperimentConfig,
    *,
    candidates: Candidates,
    replay: ReplayState,
    policy_version: int,
) -> Batch:
    """The batch of a step; counts replay uses in `replay`."""
    plain = [_advantages(group, config) for group in groups]
    metrics = rollout_metrics(groups, [one for one in plain if one is not None])
    injections: list[Injection] = []
    final = list(groups)
    if config.replay.enabled:
        final, injections = inject(groups, candidates, replay, config.replay, policy_version)
    advantages: dict[int, float] = {}
    samples: list[Sample] = []
    for group in final:
        result = _advantages(group, config)
        if result is None:
            continue
        advantages |= result.advantages
        if not (result.has_zero_variance and config.algorithm.skip_zero_variance):
            samples += _samples(group, result, renderer, config)
    fresh = [
        s for s in samples if s.replay_entry_id is not None or staleness(s, policy_version) <= MAX_STALENESS
    ]
    metrics |= {
        "replay/injected": float(len(injections)),
        "replay/injected_share": len(injections) / max(len(samples), 1),
        "staleness/max": float(largest_staleness(samples, policy_version)),
        "staleness/dropped": float(len(samples) - len(fresh)),
        "rollout/unrecorded": float(
            sum(not _is_trainable(member) for group in final for member in group.scored())
        ),
    }
    return Batch(
        samples=fresh, advantages=advantages, injections=injections, metrics=metrics, groups=list(groups)
    )


def _advantages(group: Group, config: ExperimentConfig) -> GroupAdvantages | None:
    rewards = {member.trajectory_id: float(member.reward or 0.0) for member in group.scored()}
    return group_advantages(rewards, scale=config.algorithm.scale_advantages)


def _samples(
    group: Group, result: GroupAdvantages, renderer: Renderer, config: ExperimentConfig
) -> list[Sample]:
    return [
        build_sample(
            member,
            renderer,
            advantage=result.advantages[member.trajectory_id],
            likelihood_weight=config.replay.likelihood_weight,
            merge_size=renderer.merge,
            image_token_id=renderer.image_pad_id,
        )
        for member in group.scored()
        if _is_trainable(member)
    ]


def _is_trainable(member: Trajectory) -> bool:
    """True for a replay entry and for a fully recorded trajectory.

    A fresh trajectory with a turn that was never completed (its time ran out) counts in the group,
    but it must not be imitated like a person's.
    """
    return bool(member.turns) and (member.replay_entry_id is not None or has_behaviour_logprobs(member))
