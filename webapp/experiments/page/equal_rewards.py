"""What comes of a group whose members were all rewarded alike: it depends on the algorithm."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from training.contracts.config.algorithm import AlgorithmConfig, imitates_successes


class RewardedGroup(Protocol):
    """A group, as its own application sees it."""

    def why_no_variance(self, scores: Iterable[float | None]) -> str: ...


@dataclass(frozen=True, slots=True)
class EqualRewards:
    """Such a group."""

    words: str
    """What its members have in common, e.g. "all 8 solved it"."""
    meaning: str
    is_learned: bool
    """False when the policy learns nothing from it."""


def equal_rewards_of(
    group: RewardedGroup, scores: Iterable[float | None], algorithm: AlgorithmConfig | None
) -> EqualRewards | None:
    """Of a group with its members' `scores`; None when rewards differ. Without an experiment: as GRPO."""
    known = list(scores)
    words = group.why_no_variance(known)
    if not words:
        return None
    if algorithm is None or not imitates_successes(algorithm):
        return EqualRewards(
            words, "every advantage is 0, so the policy learns nothing from this group", False
        )
    if all(score is None or score >= 1 for score in known):
        return EqualRewards(words, f"{algorithm.name} imitates all of them", True)
    return EqualRewards(words, f"none has a full score, so {algorithm.name} imitates none", False)


def meaning_for(algorithm: AlgorithmConfig) -> str:
    """Of such groups in general, as a sentence."""
    if imitates_successes(algorithm):
        return f"{algorithm.name} learns from those that were all solved, and nothing from the others."
    return "Nothing is learned from them."
