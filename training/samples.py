"""Trajectories become samples: the token-level items that the trainer eats.

Torch-free. The context of a trajectory only grows, so one trajectory is exactly one
sequence: no prefix is trained twice and no cut is ever made inside an image.

Invariant, asserted for every sample: the loss mask marks exactly the recorded completion
tokens, in order, and the image pads of the sequence are those of its screenshots' grids.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from training.types import Completion, Trajectory


class RenderedTrajectory(Protocol):
    """What rendering returns; all lists have the length of `token_ids`."""

    token_ids: Sequence[int]
    loss_mask: Sequence[int]
    behaviour_logprobs: Sequence[float]
    policy_versions: Sequence[int]
    images: Sequence[str]
    grids: Sequence[tuple[int, int, int]]


class TrajectoryRenderer(Protocol):
    """The part of `training.rendering.Renderer` that samples need."""

    def render_trajectory(self, trajectory: Trajectory) -> RenderedTrajectory: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One sequence for the trainer.

    Example: `Sample(trajectory_id=7, group_id=2, token_ids=(1, 5, 9), loss_mask=(0, 0, 1), ...)`.
    """

    trajectory_id: int
    group_id: int
    token_ids: tuple[int, ...]
    """Prompt, image pads and completions of all turns. [num_tokens]"""
    loss_mask: tuple[int, ...]
    """1 on completion tokens. [num_tokens]"""
    behaviour_logprobs: tuple[float, ...]
    """Nats; 0.0 where the mask is 0; NaN on the completion tokens of a likelihood sample. [num_tokens]"""
    policy_versions: tuple[int, ...]
    """Version that sampled each token, -1 elsewhere. [num_tokens]"""
    images: tuple[str, ...] = ()
    """sha256 of each screenshot, in order. [num_images]"""
    grids: tuple[tuple[int, int, int], ...] = ()
    """Patch grid (t, h, w) of each screenshot. [num_images]"""
    advantage: float = 0.0
    as_likelihood: bool = False
    """True when it enters as an NLL term: nobody recorded how likely its actions were."""
    likelihood_weight: float = 1.0
    """Weight of that NLL term."""
    replay_entry_id: int | None = None

    @property
    def num_loss_tokens(self) -> int:
        return sum(self.loss_mask)


def has_behaviour_logprobs(trajectory: Trajectory) -> bool:
    """True when every turn of it was sampled by a policy that recorded its logprobs."""
    if not trajectory.turns:
        return False
    return all(_is_recorded(turn.completion) for turn in trajectory.turns)


def _is_recorded(completion: Completion | None) -> bool:
    if completion is None or not completion.token_ids:
        return False
    return len(completion.behaviour_logprobs) == len(completion.token_ids)


def build_sample(
    trajectory: Trajectory,
    renderer: TrajectoryRenderer,
    *,
    advantage: float,
    likelihood_weight: float = 1.0,
    merge_size: int = 2,
    image_token_id: int | None = None,
) -> Sample:
    """The sample of `trajectory`; `group_id` is the trajectory's own.

    Raises ValueError when what was rendered is not what was sampled.
    """
    rendered = renderer.render_trajectory(trajectory)
    as_likelihood = not has_behaviour_logprobs(trajectory)
    sample = Sample(
        trajectory_id=trajectory.trajectory_id,
        group_id=trajectory.group_id,
        token_ids=tuple(rendered.token_ids),
        loss_mask=tuple(int(bit) for bit in rendered.loss_mask),
        behaviour_logprobs=tuple(float(value) for value in rendered.behaviour_logprobs),
        policy_versions=tuple(rendered.policy_versions),
        images=tuple(rendered.images),
        grids=tuple((int(t), int(h), int(w)) for t, h, w in rendered.grids),
        advantage=advantage,
        as_likelihood=as_likelihood,
        likelihood_weight=likelihood_weight,
        replay_entry_id=trajectory.replay_entry_id,
    )
    check_sample(sample, trajectory, merge_size=merge_size, image_token_id=image_token_id)
    return sample


def check_sample(
    sample: Sample, trajectory: Trajectory, *, merge_size: int, image_token_id: int | None
) -> None:
    """Raise ValueError unless `sample` holds exactly the recorded completion tokens and its image pads."""
    where = f"trajectory {trajectory.trajectory_id}"
    num_tokens = len(sample.token_ids)
    for name in ("loss_mask", "behaviour_logprobs", "policy_versions"):
        if len(getattr(sample, name)) != num_tokens:
            raise ValueError(
                f"{where}: {name} has {len(getattr(sample, name))} items for {num_tokens} tokens"
            )
    if not sample.num_loss_tokens:
        raise ValueError(f"{where}: it has no completion tokens to learn from")
    if sample.loss_mask[0]:
        raise ValueError(f"{where}: its first token is marked as sampled, but nothing precedes it")
    if not sample.as_likelihood:
        _check_recorded(sample, trajectory, where)
    if len(sample.images) != len(sample.grids):
        raise ValueError(f"{where}: {len(sample.images)} images but {len(sample.grids)} grids")
    if image_token_id is not None:
        pads = sum(token == image_token_id for token in sample.token_ids)
        expected = sum(t * h * w for t, h, w in sample.grids) // merge_size**2
        if pads != expected:
            raise ValueError(f"{where}: {pads} image pads, but its grids need {expected}")


def _check_recorded(sample: Sample, trajectory: Trajectory, where: str) -> None:
    completions = [turn.completion for turn in trajectory.turns if turn.completion is not None]
    tokens = [token for completion in completions for token in completion.token_ids]
    logprobs = [value for completion in completions for value in completion.behaviour_logprobs]
    marked = [index for index, bit in enumerate(sample.loss_mask) if bit]
    if [sample.token_ids[index] for index in marked] != tokens:
        raise ValueError(f"{where}: the tokens marked for the loss are not the tokens that were sampled")
    kept = [sample.behaviour_logprobs[index] for index in marked]
    if kept != logprobs:
        raise ValueError(f"{where}: the behaviour logprobs moved away from their tokens")
    if not all(math.isfinite(value) for value in kept):
        raise ValueError(f"{where}: a behaviour logprob is not finite")
