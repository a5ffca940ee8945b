"""The reward of a trajectory under a preset, with the breakdown that adds up to it."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from training.contracts.config.reward_presets import RewardConfig, RewardPreset, WeightedTerm
from training.contracts.milestone import ReachedMilestone
from training.contracts.types import Action, ActionKind, RewardTerm, Trajectory, Turn
from training.rewards.expressions import TermError, expression_value
from training.rewards.term import ScoredTrajectory, TermValue, facts_of, facts_of_action
from training.rewards.terms import TERMS

CLICKS = tuple(
    facts_of_action(Action(kind=ActionKind.CLICK, x=x, y=1), None, screen_changed=True, measured=None)
    for x in (1, 9)
)
"""Turns of an agent that acts and never says that it is done."""


class Reward(NamedTuple):
    reward: float
    terms: tuple[RewardTerm, ...]
    """Contributions add up to `reward`; a limit that cut it is a term of its own."""
    turn_terms: tuple[tuple[RewardTerm, ...], ...]
    """Each turn's share of the terms that are counted by turn. [num_turns]"""


def compute_reward(
    turns: Sequence[Turn],
    score: float,
    rewards: RewardConfig,
    *,
    max_turns: int,
    milestones: Sequence[ReachedMilestone] = (),
    num_milestones: int = 0,
) -> Reward:
    """Reward of a scored trajectory; `max_turns` is the limit that it ran under, `num_milestones` its task's.

    Raises ValueError for an unknown preset, a score outside [0, 1] or an expression without a value.
    """
    if not (math.isfinite(score) and 0.0 <= score <= 1.0):
        raise ValueError(f"score must be in [0, 1], not {score}")
    facts, reached = tuple(facts_of(turn) for turn in turns), tuple(one.turn for one in milestones)
    trajectory = ScoredTrajectory(facts, float(score), max_turns, reached, num_milestones)
    values = [term_value(row, trajectory) for row in rewards.terms.terms]
    reward, terms = weigh(rewards, values)
    return Reward(reward, terms, _turn_terms(terms, values, trajectory.num_turns))


def rescore(trajectory: Trajectory, rewards: RewardConfig, *, max_turns: int) -> Trajectory:
    """`trajectory` with the reward, terms and turn terms of another preset; for replay entries.

    `max_turns` is the limit that it was recorded under. Raises ValueError when
    it has no score: an errored trajectory is never rewarded.
    """
    if trajectory.score is None:
        raise ValueError(f"trajectory {trajectory.trajectory_id} has no score, so it cannot be rewarded")
    result = compute_reward(
        trajectory.turns,
        trajectory.score,
        rewards,
        max_turns=max_turns,
        milestones=trajectory.milestones,
        num_milestones=len(trajectory.task.milestones),
    )
    turns = tuple(
        turn.model_copy(update={"terms": terms})
        for turn, terms in zip(trajectory.turns, result.turn_terms, strict=True)
    )
    return trajectory.model_copy(update={"reward": result.reward, "terms": result.terms, "turns": turns})


def pays_at_limit(rewards: RewardConfig) -> bool:
    """Whether a trajectory that a limit ended is paid more for a full score than for none.

    Terms may be expressions, so it is tried. One that has no value for so few turns counts as paying nothing.
    """
    try:
        none, full = (
            weigh(rewards, [term_value(row, ended) for row in rewards.terms.terms])[0]
            for ended in (ScoredTrajectory(CLICKS, score, len(CLICKS)) for score in (0.0, 1.0))
        )
    except TermError:
        return False
    return full > none


def term_value(row: WeightedTerm, trajectory: ScoredTrajectory) -> TermValue:
    """Value of one term within its limits, before it is weighted. Raises TermError."""
    found = expression_value(row, trajectory) if row.expression else TERMS[row.term](trajectory)
    value = _within(found.value, row)
    if value == found.value:
        return found
    note = f"{found.value:g}, kept within {_range(row)}"
    return TermValue(value, f"{found.note}; {note}" if found.note else note, found.per_turn)


def weigh(rewards: RewardConfig, values: Sequence[TermValue]) -> tuple[float, tuple[RewardTerm, ...]]:
    """The reward and its terms, from the values of the preset's terms in their order."""
    preset = rewards.terms
    weights = [row.weight * (rewards.alpha if row.is_partial else 1.0) for row in preset.terms]
    terms = tuple(
        RewardTerm(name=row.term, value=v.value, weight=w, contribution=w * v.value, note=v.note)
        for row, v, w in zip(preset.terms, values, weights, strict=True)
    )
    total = sum(term.contribution for term in terms)
    reward = _within(total, preset)
    if reward == total:
        return total, terms
    cut = reward - total
    note = f"the preset keeps rewards within {_range(preset)}"
    return reward, (*terms, RewardTerm(name="limit.v1", value=cut, weight=1.0, contribution=cut, note=note))


def _within(value: float, limits: RewardPreset | WeightedTerm) -> float:
    if limits.low is not None:
        value = max(limits.low, value)
    if limits.high is not None:
        value = min(limits.high, value)
    return value


def _range(limits: RewardPreset | WeightedTerm) -> str:
    return f"{limits.low} to {limits.high}"


def _turn_terms(
    terms: Sequence[RewardTerm], values: Sequence[TermValue], num_turns: int
) -> tuple[tuple[RewardTerm, ...], ...]:
    """Every by-turn term split over its turns, in proportion to their marks."""
    split: list[list[RewardTerm]] = [[] for _ in range(num_turns)]
    for term, value in zip(terms, values, strict=False):  # a limit that cut the sum belongs to no turn
        total = sum(value.per_turn)
        for index, mark in enumerate(value.per_turn):
            share = value.value * mark / total if total else 0.0
            split[index].append(
                RewardTerm(name=term.name, value=mark, weight=term.weight, contribution=term.weight * share)
            )
    return tuple(tuple(shares) for shares in split)
