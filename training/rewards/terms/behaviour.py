"""Reward terms of what the agent did: its effect on the screen, its variety, repetition and waiting."""

from itertools import pairwise

from training.contracts.types import ActionKind
from training.rewards.term import (
    ScoredTrajectory,
    TermFunction,
    TermValue,
    TurnFacts,
    capped_penalty,
    fraction,
)

MODALITIES = ("click", "type", "key", "scroll", "drag", "wait")
LOW_TURNS, HIGH_TURNS = 2, 5


def screen_change(trajectory: ScoredTrajectory) -> TermValue:
    """Share of turns after which the screen looked different."""
    return fraction([turn.is_changed for turn in trajectory.turns])


def great_turns(trajectory: ScoredTrajectory) -> TermValue:
    """Share of turns that were carried out and also changed the screen or ended the trajectory."""
    return fraction([_is_great(turn) for turn in trajectory.turns])


def tool_calling(trajectory: ScoredTrajectory) -> TermValue:
    """Variety and number of actions, as Slime-OSWorld counts them (low complexity).

    0.4 x min(1, kinds / 3) + 0.4 x complexity + 0.2 x min(1, modalities / 2)
    complexity: 1 for 2 to 5 turns, turns / 2 below, max(0.5, 5 / turns) above
    """
    if not trajectory.turns:
        return TermValue(0.0)
    kinds = {turn.kind for turn in trajectory.turns if turn.kind is not None}
    modalities = {word for word in MODALITIES if any(word in kind for kind in kinds)}
    value = (
        0.4 * min(1.0, len(kinds) / 3)
        + 0.4 * few_turns(trajectory.num_turns)
        + 0.2 * min(1.0, len(modalities) / 2)
    )
    return TermValue(value)


def repetition_penalty(trajectory: ScoredTrajectory) -> TermValue:
    """min(0.30, 0.40 x share of turns that repeat the one before in kind and point); 0 below two turns.

    Actions without a point count as the same point, so two texts typed in a row are a repetition: that
    is Slime-OSWorld's rule.
    """
    if trajectory.num_turns < 2:
        return TermValue(0.0)
    same = [before.place == turn.place for before, turn in pairwise(trajectory.turns)]
    return capped_penalty([False, *same], rate=0.40, cap=0.30)


def wait_penalty(trajectory: ScoredTrajectory) -> TermValue:
    """0.3 x share of turns that only waited."""
    waits = [turn.kind is ActionKind.WAIT for turn in trajectory.turns]
    return capped_penalty(waits, rate=0.3, cap=0.3)


def _is_great(turn: TurnFacts) -> bool:
    return turn.is_executed and (turn.kind is ActionKind.TERMINATE or turn.is_changed)


def few_turns(num_turns: int) -> float:
    """1 for 2 to 5 turns, less for fewer or more."""
    if num_turns < LOW_TURNS:
        return num_turns / LOW_TURNS
    if num_turns > HIGH_TURNS:
        return max(0.5, HIGH_TURNS / num_turns)
    return 1.0


TERMS: dict[str, TermFunction] = {
    "screen_change.v1": screen_change,
    "great_turns.v1": great_turns,
    "tool_calling.v1": tool_calling,
    "repetition_penalty.v1": repetition_penalty,
    "wait_penalty.v1": wait_penalty,
}
