"""What a reward term gets and returns. Pure: it is a function of the turns and the score alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from training.contracts.types import Turn


@dataclass(frozen=True, slots=True)
class ScoredTrajectory:
    """The input of every term."""

    turns: tuple[Turn, ...]
    score: float
    """Evaluator's result in [0, 1]."""
    max_turns: int
    """Limit that the trajectory ran under."""

    @property
    def num_turns(self) -> int:
        return len(self.turns)


@dataclass(frozen=True, slots=True)
class TermValue:
    """A term's value, and each turn's part in it where it has one."""

    value: float
    note: str = ""
    per_turn: tuple[float, ...] = ()
    """Marks of the single turns, as the term counts them; empty = belongs to no turn. [num_turns]"""


TermFunction = Callable[[ScoredTrajectory], TermValue]


def fraction(marks: Sequence[bool | float], note: str = "") -> TermValue:
    """Mean of the turns' marks; 0 without turns."""
    values = tuple(float(mark) for mark in marks)
    return TermValue(sum(values) / len(values) if values else 0.0, note, values)


def capped_penalty(marks: Sequence[bool], rate: float, cap: float, note: str = "") -> TermValue:
    """min(cap, rate x share of marked turns)."""
    share = fraction(marks)
    return TermValue(min(cap, rate * share.value), note, share.per_turn)


def is_executed(turn: Turn) -> bool:
    """An action was parsed and the desktop did not refuse it."""
    return turn.action is not None and turn.action_error is None
