"""The reward of a trajectory under a preset, with the breakdown that adds up to it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from training.contracts.config.reward_presets import REWARD_PRESETS, RewardPreset, RewardPresetName
from training.contracts.types import RewardTerm, Trajectory, Turn
from training.rewards.term import ScoredTrajectory, TermValue
from training.rewards.terms import TERMS


class Reward(NamedTuple):
    """A reward and where it comes from."""

    reward: float
    terms: tuple[RewardTerm, ...]
    """Contributions add up to `reward`; a limit that cut it is a term of its own."""
    turn_terms: tuple[tuple[RewardTerm, ...], ...]
    """Each turn's share of the terms that are counted by turn. [num_turns]"""


def compute_reward(
    turns: Sequence[Turn], score: float, preset: RewardPresetName, *, alpha: float, max_turns: int
) -> Reward:
    """Reward of a scored trajectory; `max_turns` is the limit that it ran under.

    Raises ValueError for an unknown preset or a score outside [0, 1].
    """
    if preset not in REWARD_PRESETS:
        raise ValueError(f"unknown reward preset {preset!r}; known: {', '.join(REWARD_PRESETS)}")
    if not (math.isfinite(score) and 0.0 <= score <= 1.0):
        raise ValueError(f"score must be in [0, 1], not {score}")
    trajectory = ScoredTrajectory(tuple(turns), float(score), max_turns)
    rows = REWARD_PRESETS[preset].terms
    values = [TERMS[row.term](trajectory) for row in rows]
    weights = [row.weight * (alpha if row.is_partial else 1.0) for row in rows]
    terms = [
        RewardTerm(name=row.term, value=v.value, weight=w, contribution=w * v.value, note=v.note)
        for row, v, w in zip(rows, values, weights, strict=True)
    ]
    reward, limit = _limited(REWARD_PRESETS[preset], sum(term.contribution for term in terms))
    return Reward(reward, (*terms, *limit), _turn_terms(terms, values, trajectory.num_turns))


def rescore(trajectory: Trajectory, preset: RewardPresetName, *, alpha: float, max_turns: int) -> Trajectory:
    """`trajectory` with the reward, terms and turn terms of another preset; for replay entries.

    `max_turns` is the limit that it was recorded under. Raises ValueError when
    it has no score: an errored trajectory is never rewarded.
    """
    if trajectory.score is None:
        raise ValueError(f"trajectory {trajectory.trajectory_id} has no score, so it cannot be rewarded")
    result = compute_reward(trajectory.turns, trajectory.score, preset, alpha=alpha, max_turns=max_turns)
    turns = tuple(
        turn.model_copy(update={"terms": terms})
        for turn, terms in zip(trajectory.turns, result.turn_terms, strict=True)
    )
    return trajectory.model_copy(update={"reward": result.reward, "terms": result.terms, "turns": turns})


def _limited(preset: RewardPreset, total: float) -> tuple[float, tuple[RewardTerm, ...]]:
    """The sum within the preset's limits, and the term that says what they took."""
    reward = total
    if preset.low is not None:
        reward = max(preset.low, reward)
    if preset.high is not None:
        reward = min(preset.high, reward)
    if reward == total:
        return total, ()
    cut = reward - total
    note = f"the preset keeps rewards within {preset.low} to {preset.high}"
    return reward, (RewardTerm(name="limit.v1", value=cut, weight=1.0, contribution=cut, note=note),)


def _turn_terms(
    terms: Sequence[RewardTerm], values: Sequence[TermValue], num_turns: int
) -> tuple[tuple[RewardTerm, ...], ...]:
    """Every by-turn term split over its turns, in proportion to their marks."""
    split: list[list[RewardTerm]] = [[] for _ in range(num_turns)]
    for term, value in zip(terms, values, strict=True):
        total = sum(value.per_turn)
        for index, mark in enumerate(value.per_turn):
            share = value.value * mark / total if total else 0.0
            split[index].append(
                RewardTerm(name=term.name, value=mark, weight=term.weight, contribution=term.weight * share)
            )
    return tuple(tuple(shares) for shares in split)
