"""Trajectories that must not be trained on: each is left out and counted by its reason, and ends nothing.

Its group keeps the other members; advantages are theirs alone.
"""

import logging
import math
from collections import Counter
from collections.abc import Container, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from training.batch.samples import Sample
from training.contracts.types import Completion, Group, Trajectory
from training.rollouts.picture_check import PictureCheck

logger = logging.getLogger(__name__)


class Reason(StrEnum):
    """Why a trajectory is left out."""

    NOT_FINITE = "not_finite"
    """A recorded logprob is no finite number."""
    OUT_OF_VOCABULARY = "out_of_vocabulary"
    """A sampled token is none of this model's."""
    COUNT_MISMATCH = "count_mismatch"
    """A completion has tokens without a logprob, or logprobs without a token."""
    TOO_LONG = "too_long"
    """A sequence of it is longer than `sampling.max_context_tokens`."""
    OTHER_CONTEXT = "other_context"
    """What the trainer renders is not what the policy server had in front of a completion."""
    LOST_SCREENSHOT = "lost_screenshot"
    """A screenshot that it was sampled with is gone, cut off, or another picture."""


class Untrainable(Exception):
    """Raised for a trajectory that must not be trained on."""

    def __init__(self, trajectory_id: int, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.trajectory_id, self.reason = trajectory_id, reason


@dataclass(slots=True)
class LeftOut:
    """What one step leaves out."""

    reasons: dict[int, Reason] = field(default_factory=dict)
    """trajectory_id -> why."""
    pictures: PictureCheck | None = None
    """None = not looked at."""

    def seen(self, samples: list[Sample]) -> list[Sample]:
        """`samples`, whose screenshots are all there. Raises Untrainable."""
        shas = {sha for sample in samples for sha in sample.images}
        lost = self.pictures.lost(shas) if self.pictures is not None else {}
        for sha, why in lost.items():
            words = f"screenshot {sha[:12]} {why}"
            raise Untrainable(samples[0].trajectory_id, Reason.LOST_SCREENSHOT, words)
        return samples

    def add(self, error: Untrainable) -> None:
        """Count it, and say so in the log."""
        self.reasons[error.trajectory_id] = error.reason
        logger.warning("trajectory %s is not trained on (%s): %s", error.trajectory_id, error.reason, error)

    def metrics(self) -> dict[str, float]:
        """dropped/REASON."""
        counts = Counter(self.reasons.values())
        return {f"dropped/{reason}": float(counts[reason]) for reason in Reason}

    def without(self, group: Group) -> Group:
        """`group` without them."""
        return without(group, self.reasons)


def without(group: Group, left_out: Container[int]) -> Group:
    """`group` and its branches without the trajectories of these ids."""
    kept = tuple(one for one in group.trajectories if one.trajectory_id not in left_out)
    branches = tuple(without(branch, left_out) for branch in group.branches)
    if len(kept) == len(group.trajectories) and branches == group.branches:
        return group
    return group.model_copy(update={"trajectories": kept, "branches": branches})


def check_recorded(trajectory: Trajectory, vocabulary: int) -> None:
    """Raise Untrainable unless all its recorded tokens can be trained on by a model of this vocabulary."""
    for turn in trajectory.turns:
        if turn.completion is not None:
            _check_completion(turn.completion, vocabulary, trajectory.trajectory_id, turn.index)


def _check_completion(completion: Completion, vocabulary: int, trajectory_id: int, turn: int) -> None:
    tokens, logprobs = completion.token_ids, completion.behaviour_logprobs
    if logprobs and len(logprobs) != len(tokens):
        words = f"turn {turn} has {len(tokens)} tokens and {len(logprobs)} logprobs"
        raise Untrainable(trajectory_id, Reason.COUNT_MISMATCH, words)
    if unknown := [token for token in tokens if not 0 <= token < vocabulary]:
        words = f"turn {turn} has the token {unknown[0]}, the model {vocabulary} tokens"
        raise Untrainable(trajectory_id, Reason.OUT_OF_VOCABULARY, words)
    if wrong := [value for value in logprobs if not math.isfinite(value)]:
        raise Untrainable(trajectory_id, Reason.NOT_FINITE, f"turn {turn} has the logprob {wrong[0]}")


def check_lengths(samples: Sequence[Sample], limit: int) -> None:
    """Raise Untrainable when a sequence is longer than `limit` tokens."""
    for sample in samples:
        if (length := len(sample.token_ids)) > limit:
            words = f"{length} tokens do not fit sampling.max_context_tokens = {limit}"
            raise Untrainable(sample.trajectory_id, Reason.TOO_LONG, words)
