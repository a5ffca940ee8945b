"""Groups of a step become the batch of its update, with replay injected. Rank 0 only.

groups -> without untrainable and stale members -> injection -> advantages (>= 2 scored members) -> samples
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from training.batch.samples import Sample, fresh_tokens
from training.batch.staleness_metrics import staleness, staleness_metrics, trajectory_ages
from training.contracts.config import ExperimentConfig
from training.contracts.trainer_reports import MemberUpdate, ReplaySkip, ReplayUse
from training.contracts.types import Group
from training.render.renderer import Renderer
from training.rollouts.branch_credit import branch_metrics
from training.rollouts.group_samples import (
    advantages_of,
    is_trainable,
    samples_beside,
    teaches,
    trained_advantages,
    trained_samples,
    true_rewards,
)
from training.rollouts.picture_check import PictureCheck
from training.rollouts.replay_admission import ReplayAdmission
from training.rollouts.replay_injection import Candidates, Injection, ReplayState, has_failed, inject
from training.rollouts.rollout_metrics import rollout_metrics
from training.rollouts.untrainable import LeftOut, Untrainable, check_recorded, without


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
    plain = [advantages_of(group, true_rewards(group), config) for group in groups]
    metrics = rollout_metrics(groups, [one for one in plain if one is not None])
    admission = ReplayAdmission(renderer=renderer, config=config, vocabulary=vocabulary)
    final, injections = _with_replay(trainable, candidates, admission, replay)
    advantages: dict[int, float] = {}
    samples: list[Sample] = []
    for group in final:
        result, own = trained_samples(group, renderer, config, left_out)
        advantages |= result.advantages if result is not None else {}
        samples += own
    for entry in [one.beside for one in injections if one.beside is not None]:
        own = samples_beside(entry, renderer, config, left_out)
        advantages |= {one.trajectory_id: 0.0 for one in own}
        samples += own
    injections = [one for one in injections if one.trajectory_id in advantages]
    fresh = fresh_tokens(samples, policy_version, config.algorithm)
    metrics |= {
        "replay/failed_groups": float(
            sum(has_failed(group, config.replay.threshold, admission.rule) for group in groups)
        ),
        "replay/injected": float(len(injections)),
        "replay/skipped": float(len(admission.skips)),
        "replay/injected_share": len(injections) / max(len({one.trajectory_id for one in samples}), 1),
        **branch_metrics(groups),
        **_ages(samples, policy_version, stale),
        **_stale_token_metrics(samples, fresh, config),
        **left_out.metrics(),
        "rollout/unrecorded": float(
            sum(not is_trainable(member) for group in final for member in group.scored())
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


def _with_replay(
    groups: list[Group], candidates: Candidates, admission: ReplayAdmission, replay: ReplayState
) -> tuple[list[Group], list[Injection]]:
    config = admission.config
    if not config.replay.enabled:
        return groups, []
    trained = {group.group_id for group in groups if teaches(trained_advantages(group, config), config)}
    rule, admit = admission.rule, admission.admit
    return inject(groups, candidates, admit, replay, config.replay, rule=rule, trained_groups=trained)


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


def _trainable(
    group: Group,
    vocabulary: int,
    policy_version: int,
    config: ExperimentConfig,
    left_out: LeftOut,
    stale: dict[int, int],
) -> Group:
    """`group` without wrong records and without members that are too old, whose ages go to `stale`."""
    for member in group.all_scored():
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
    for member in group.all_scored():
        newest, oldest = trajectory_ages(member, policy_version, algorithm.train_last_turns)
        if (newest if algorithm.mask_stale_tokens else oldest) > algorithm.max_staleness:
            stale[member.trajectory_id] = oldest
    return without(group, stale)
