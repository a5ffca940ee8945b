"""What comes of a group whose members were all rewarded alike: it depends on the algorithm."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from training.contracts.config.algorithm import AlgorithmConfig, imitates_successes
from training.contracts.outcome import Outcome, succeeded


class RewardedGroup(Protocol):
    """A group, as its own application sees it."""

    num_scored: int

    @property
    def has_no_variance(self) -> bool: ...


class Member(Protocol):
    """One of its trajectories."""

    score: float | None

    @property
    def outcome(self) -> Outcome | None: ...


@dataclass(frozen=True, slots=True)
class EqualRewards:
    """Such a group."""

    words: str
    """What its members have in common, e.g. "all 8 solved it, 3 of them at a limit"."""
    meaning: str
    is_learned: bool
    """False when the policy learns nothing from it."""


def equal_rewards_of(
    group: RewardedGroup, members: Iterable[Member], algorithm: AlgorithmConfig | None
) -> EqualRewards | None:
    """Of a group with these members; None when rewards differ. Without an experiment: as GRPO."""
    if not group.has_no_variance:
        return None
    scored = [member for member in members if member.score is not None]
    words = _in_common(group.num_scored, scored)
    if algorithm is None or not imitates_successes(algorithm):
        return EqualRewards(
            words, "every advantage is 0, so the policy learns nothing from this group", False
        )
    if all(member.outcome is Outcome.SOLVED for member in scored):
        return EqualRewards(words, f"{algorithm.name} imitates all of them", True)
    return EqualRewards(words, f"the agent solved and ended none, so {algorithm.name} imitates none", False)


def _in_common(number: int, scored: list[Member]) -> str:
    if scored and all(succeeded(member.score) for member in scored):
        at_limit = sum(member.outcome is Outcome.SOLVED_AT_LIMIT for member in scored)
        return f"all {number} solved it{f', {at_limit} of them at a limit' if at_limit else ''}"
    if scored and all((member.score or 0) <= 0 for member in scored):
        return f"none of {number} solved it"
    return "all are rewarded alike"


def meaning_for(algorithm: AlgorithmConfig) -> str:
    """Of such groups in general, as a sentence."""
    if imitates_successes(algorithm):
        return f"{algorithm.name} learns from those that were all solved, and nothing from the others."
    return "Nothing is learned from them."
