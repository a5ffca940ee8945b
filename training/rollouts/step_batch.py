"""Groups of a step become the batch of its update, with replay injected. Rank 0 only.

groups -> without untrainable and stale members -> injection -> advantages (>= 2 scored members) -> samples
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from training.batch.advantages import GroupAdvantages, group_advantages
from training.batch.reward_control import controlled_rewards
from training.batch.samples import Sample, build_samples, fresh_tokens, has_behaviour_logprobs
from training.batch.staleness_metrics import staleness, staleness_metrics, trajectory_ages
from training.batch.void_turns import credit_of_turns
from training.contracts.config import ExperimentConfig
from training.contracts.config.algorithm import imitates_successes
from training.contracts.config.reward_presets import reward_range
from training.contracts.outcome import succeeded
from training.contracts.trainer_reports import MemberUpdate, ReplaySkip, ReplayUse
from training.contracts.types import Group, Trajectory, TrajectoryStatus
from training.render.renderer import Renderer
from training.rollouts.picture_check import PictureCheck
from training.rollouts.replay_admission import ReplayAdmission
from training.rollouts.replay_injection import Candidates, Injection, ReplayState, has_failed, inject
from training.rollouts.rollout_metrics import rollout_metrics
from training.rollouts.untrainable import LeftOut, Reason, Untrainable, check_lengths, check_recorded, without


@dataclass(slots=True, kw_only=True)
class StepBatch:
    """What one step trains on and reports."""

    samples: list[Sample]
    advantages: dict[int, float]
    """trajectory_id -> advantage, members of zero-variance groups included."""
    injections: list[Injection]
    metrics: dict[str, float]
    skips: list[ReplaySkip] = field(default_factory=list)
    """Replay entries that were wanted, but could not be used."""
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
    vocabulary: int,
    pictures: PictureCheck | None = None,
) -> StepBatch:
    """The batch of a step; counts replay uses in `replay`.

    `vocabulary`: token ids that the model has; `pictures`: None = screenshots are not looked at. A trajectory
    that cannot be trained on is left out of all but the metrics of rollouts.
    """
    left_out = LeftOut(pictures=pictures)
    stale: dict[int, int] = {}
    trainable = [_trainable(group, vocabulary, policy_version, config, left_out, stale) for group in groups]
    plain = [_advantages(group, _true_rewards(group), config) for group in groups]
    metrics = rollout_metrics(groups, [one for one in plain if one is not None])
    injections: list[Injection] = []
    admission = ReplayAdmission(renderer=renderer, config=config, vocabulary=vocabulary)
    final = trainable
    if config.replay.enabled:
        trained = {
            group.group_id for group in trainable if _teaches(_trained_advantages(group, config), config)
        }
        final, injections = inject(
            trainable, candidates, admission.admit, replay, config.replay, trained_groups=trained
        )
    advantages: dict[int, float] = {}
    samples: list[Sample] = []
    for group in final:
        result, own = _trained(group, renderer, config, left_out)
        advantages |= result.advantages if result is not None else {}
        samples += own
    injections = [one for one in injections if one.trajectory_id in advantages]
    fresh = fresh_tokens(samples, policy_version, config.algorithm)
    metrics |= {
        "replay/failed_groups": float(sum(has_failed(group, config.replay.threshold) for group in groups)),
        "replay/injected": float(len(injections)),
        "replay/skipped": float(len(admission.skips)),
        "replay/injected_share": len(injections) / max(len({one.trajectory_id for one in samples}), 1),
        **_ages(samples, policy_version, stale),
        **_stale_token_metrics(samples, fresh, config),
        **left_out.metrics(),
        "rollout/unrecorded": float(
            sum(not _is_trainable(member) for group in final for member in group.scored())
        ),
    }
    return StepBatch(
        samples=fresh,
        advantages=advantages,
        injections=injections,
        skips=admission.skips,
        metrics=metrics,
        groups=list(groups),
    )


def _ages(samples: list[Sample], policy_version: int, stale: dict[int, int]) -> dict[str, float]:
    own = [staleness(sample, policy_version) for sample in samples if sample.replay_entry_id is None]
    return staleness_metrics([*own, *stale.values()]) | {"async/dropped": float(len(stale))}


def _stale_token_metrics(
    samples: list[Sample], fresh: list[Sample], config: ExperimentConfig
) -> dict[str, float]:
    if not config.algorithm.mask_stale_tokens:
        return {}
    before, after = (sum(sample.num_loss_tokens for sample in some) for some in (samples, fresh))
    return {"async/masked_tokens": float(before - after)}


def _true_rewards(group: Group) -> dict[int, float]:
    """trajectory_id -> reward of the scored members."""
    return {member.trajectory_id: float(member.reward or 0.0) for member in group.scored()}


def _trained_rewards(group: Group, config: ExperimentConfig) -> dict[int, float]:
    """What advantages are made of: other than the true ones only in a control run."""
    return controlled_rewards(
        _true_rewards(group),
        config.algorithm.reward_control,
        seed=config.optimiser.seed,
        group_id=group.group_id,
    )


def _advantages(group: Group, rewards: dict[int, float], config: ExperimentConfig) -> GroupAdvantages | None:
    algorithm = config.algorithm
    return group_advantages(
        rewards,
        scale=algorithm.scale_advantages,
        baseline=algorithm.baseline,
        num_turns={member.trajectory_id: len(member.turns) for member in group.scored()},
        discount=algorithm.turn_discount,
        floor=algorithm.least_deviation * reward_range(config.rewards),
    )


def _trained_advantages(group: Group, config: ExperimentConfig) -> GroupAdvantages | None:
    return _advantages(group, _trained_rewards(group, config), config)


def _teaches(result: GroupAdvantages | None, config: ExperimentConfig) -> bool:
    """Whether a group with these advantages enters the loss."""
    if result is None:
        return False
    if imitates_successes(config.algorithm):
        return True  # a group of successes alone has targets like any other
    return not (result.has_zero_variance and config.algorithm.skip_zero_variance)


def _trainable(
    group: Group,
    vocabulary: int,
    policy_version: int,
    config: ExperimentConfig,
    left_out: LeftOut,
    stale: dict[int, int],
) -> Group:
    """`group` without wrong records and without members that are too old, whose ages go to `stale`."""
    for member in group.scored():
        try:
            check_recorded(member, vocabulary)
        except Untrainable as error:
            left_out.add(error)
    return _without_stale(left_out.without(group), policy_version, config, stale)


def _without_stale(
    group: Group, policy_version: int, config: ExperimentConfig, stale: dict[int, int]
) -> Group:
    """`group` without trajectories that are too old, as if they had not come back; their ages go to `stale`.

    They leave before the advantages: siblings must not be compared with what is not trained on. With
    `mask_stale_tokens` only those leave of which no token is fresh enough; of others, tokens leave the loss.
    """
    algorithm = config.algorithm
    for member in group.scored():
        newest, oldest = trajectory_ages(member, policy_version, algorithm.train_last_turns)
        if (newest if algorithm.mask_stale_tokens else oldest) > algorithm.max_staleness:
            stale[member.trajectory_id] = oldest
    return without(group, stale)


def _trained(
    group: Group, renderer: Renderer, config: ExperimentConfig, left_out: LeftOut
) -> tuple[GroupAdvantages | None, list[Sample]]:
    """Advantages and samples of a group; without each member that turns out to be untrainable."""
    while True:
        result = _trained_advantages(group, config)
        if result is None:
            return None, []
        try:
            return result, [
                sample
                for member in group.scored()
                if _is_trainable(member) and not _is_left_out(member, config)
                for sample in left_out.seen(_samples(member, result, renderer, config))
            ]
        except Untrainable as error:
            left_out.add(error)
            group = left_out.without(group)


def _samples(
    member: Trajectory, result: GroupAdvantages, renderer: Renderer, config: ExperimentConfig
) -> list[Sample]:
    """Raises Untrainable."""
    advantage = result.advantages[member.trajectory_id]
    credit = credit_of_turns(
        member,
        advantage,
        result.turns.get(member.trajectory_id, ()),
        config.algorithm,
        is_flat=not _teaches(result, config),
    )
    if not credit.trained:
        return []
    try:
        samples = build_samples(
            member,
            renderer,
            advantage=advantage,
            turn_advantages=credit.advantages,
            trained_turns=credit.trained,
            likelihood_weight=config.replay.likelihood_weight,
            merge_size=renderer.merge,
            image_token_id=renderer.image_pad_id,
        )
    except ValueError as error:
        raise Untrainable(member.trajectory_id, Reason.OTHER_CONTEXT, str(error)) from error
    check_lengths(samples, config.sampling.max_context_tokens)
    if imitates_successes(config.algorithm):
        return [replace(sample, as_likelihood=True, likelihood_weight=1.0) for sample in samples]
    weight = _imitation_weight(member, config)
    return [replace(sample, imitation_weight=weight) for sample in samples]


def _is_left_out(member: Trajectory, config: ExperimentConfig) -> bool:
    """Rejected for want of a full score; or, own and ended by a limit, masked as overlong."""
    if imitates_successes(config.algorithm) and not succeeded(member.score):
        return True
    is_cut = member.status is TrajectoryStatus.TRUNCATED and member.replay_entry_id is None
    return is_cut and config.algorithm.mask_truncated


def _imitation_weight(member: Trajectory, config: ExperimentConfig) -> float:
    """SFT on success: the policy's own full scores; replay entries have their own weight."""
    is_own_success = member.replay_entry_id is None and succeeded(member.score)
    return config.algorithm.success_likelihood if is_own_success else 0.0


def _is_trainable(member: Trajectory) -> bool:
    """True for a replay entry and for a fully recorded trajectory.

    A fresh trajectory with a turn that was never completed (its time ran out) counts in the group,
    but it must not be imitated like a person's.
    """
    return bool(member.turns) and (member.replay_entry_id is not None or has_behaviour_logprobs(member))
