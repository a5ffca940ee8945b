"""Groups of a step become the batch of its update, with replay injected. Rank 0 only.

groups -> injection -> advantages (>= 2 scored members) -> samples -> without stale ones
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from training.batch.advantages import GroupAdvantages, group_advantages
from training.batch.samples import (
    Sample,
    build_samples,
    has_behaviour_logprobs,
    share_counts,
    without_stale_tokens,
)
from training.batch.staleness_metrics import staleness, staleness_metrics
from training.contracts.config import ExperimentConfig
from training.contracts.trainer_reports import MemberUpdate, ReplayUse
from training.contracts.types import Group, Trajectory
from training.render.renderer import Renderer
from training.rollouts.held_out_success import succeeded
from training.rollouts.replay_injection import Candidates, Injection, ReplayState, has_failed, inject
from training.rollouts.rollout_metrics import rollout_metrics


@dataclass(slots=True, kw_only=True)
class StepBatch:
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
                policy_logprob_gap=_finite(per_sequence[key][1]) if key in per_sequence else None,
            )
            for key, advantage in self.advantages.items()
            if key not in injected
        ]

    def replay_uses(self, step: int, per_sequence: dict[int, tuple[float, float]]) -> list[ReplayUse]:
        """For every injected entry."""
        uses = []
        for one in self.injections:
            ratio = per_sequence[one.trajectory_id][0] if one.trajectory_id in per_sequence else None
            uses.append(one.report(step, self.advantages[one.trajectory_id], _finite(ratio)))
        return uses


def _finite(value: float | None) -> float | None:
    """A step that was skipped because its gradient was not finite may have other such numbers: None."""
    return value if value is not None and math.isfinite(value) else None


def build_step_batch(
    groups: Sequence[Group],
    renderer: Renderer,
    config: ExperimentConfig,
    *,
    candidates: Candidates,
    replay: ReplayState,
    policy_version: int,
) -> StepBatch:
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
    fresh = _fresh(samples, policy_version, config)
    metrics |= {
        "replay/failed_groups": float(sum(has_failed(group, config.replay.threshold) for group in groups)),
        "replay/injected": float(len(injections)),
        "replay/injected_share": len(injections) / max(len(samples), 1),
        **staleness_metrics(samples, policy_version),
        "async/dropped": float(len(samples) - len(fresh)),
        **_stale_token_metrics(samples, fresh, config),
        "rollout/unrecorded": float(
            sum(not _is_trainable(member) for group in final for member in group.scored())
        ),
    }
    return StepBatch(
        samples=fresh, advantages=advantages, injections=injections, metrics=metrics, groups=list(groups)
    )


def _stale_token_metrics(
    samples: list[Sample], fresh: list[Sample], config: ExperimentConfig
) -> dict[str, float]:
    if not config.algorithm.mask_stale_tokens:
        return {}
    before, after = (sum(sample.num_loss_tokens for sample in some) for some in (samples, fresh))
    return {"async/masked_tokens": float(before - after)}


def _advantages(group: Group, config: ExperimentConfig) -> GroupAdvantages | None:
    algorithm = config.algorithm
    return group_advantages(
        {member.trajectory_id: float(member.reward or 0.0) for member in group.scored()},
        scale=algorithm.scale_advantages,
        baseline=algorithm.baseline,
        num_turns={member.trajectory_id: len(member.turns) for member in group.scored()},
        discount=algorithm.turn_discount,
    )


def _samples(
    group: Group, result: GroupAdvantages, renderer: Renderer, config: ExperimentConfig
) -> list[Sample]:
    return [
        replace(sample, imitation_weight=_imitation_weight(member, config))
        for member in group.scored()
        if _is_trainable(member)
        for sample in build_samples(
            member,
            renderer,
            advantage=result.advantages[member.trajectory_id],
            turn_advantages=result.turns.get(member.trajectory_id, ()),
            last_turns=config.algorithm.train_last_turns,
            likelihood_weight=config.replay.likelihood_weight,
            merge_size=renderer.merge,
            image_token_id=renderer.image_pad_id,
        )
    ]


def _imitation_weight(member: Trajectory, config: ExperimentConfig) -> float:
    """SFT on success: the policy's own full scores; replay entries have their own weight."""
    is_own_success = member.replay_entry_id is None and succeeded(member.score)
    return config.algorithm.success_likelihood if is_own_success else 0.0


def _fresh(samples: list[Sample], policy_version: int, config: ExperimentConfig) -> list[Sample]:
    """Samples without what is too old: whole samples, or single tokens if the config says so."""
    bound = config.algorithm.max_staleness
    if config.algorithm.mask_stale_tokens:
        oldest = policy_version - bound
        own = [s if s.replay_entry_id is not None else without_stale_tokens(s, oldest) for s in samples]
        return share_counts(own)
    return [s for s in samples if s.replay_entry_id is not None or staleness(s, policy_version) <= bound]


def _is_trainable(member: Trajectory) -> bool:
    """True for a replay entry and for a fully recorded trajectory.

    A fresh trajectory with a turn that was never completed (its time ran out) counts in the group,
    but it must not be imitated like a person's.
    """
    return bool(member.turns) and (member.replay_entry_id is not None or has_behaviour_logprobs(member))
