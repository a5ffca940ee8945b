"""Reward terms of the action format: was the completion parsed, and did the desktop accept the action?"""

from training.rewards.term import (
    ScoredTrajectory,
    TermFunction,
    TermValue,
    capped_penalty,
    fraction,
)


def parsable(trajectory: ScoredTrajectory) -> TermValue:
    """Share of turns whose completion held an action."""
    return fraction([turn.kind is not None for turn in trajectory.turns])


def executed(trajectory: ScoredTrajectory) -> TermValue:
    """Share of turns whose action the desktop carried out."""
    return fraction([turn.is_executed for turn in trajectory.turns])


def refused(trajectory: ScoredTrajectory) -> TermValue:
    """Share of turns without effect: nothing could be parsed, or the desktop refused the action."""
    return fraction([not turn.is_executed for turn in trajectory.turns])


def invalid_penalty(trajectory: ScoredTrajectory) -> TermValue:
    """min(0.15, 0.30 x share of unparsable turns); 0 below two turns."""
    if trajectory.num_turns < 2:
        return TermValue(0.0)
    return capped_penalty([turn.kind is None for turn in trajectory.turns], rate=0.30, cap=0.15)


TERMS: dict[str, TermFunction] = {
    "parsable.v1": parsable,
    "action_parse_valid.v1": parsable,
    "action_executed.v1": executed,
    "good_turns.v1": executed,
    "refused.v1": refused,
    "invalid_penalty.v1": invalid_penalty,
}
"""Two ids of one function: Slime-OSWorld and the Windows seed have names of their own for it."""
