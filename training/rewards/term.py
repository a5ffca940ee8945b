"""What a reward term gets and returns. Pure: it is a function of the turns and the score alone."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from training.contracts.observed_text import NOT_MEASURED, MeasuredTurn
from training.contracts.types import Action, ActionKind, Turn

AFTERWARDS = frozenset({ActionKind.WAIT, ActionKind.KEY_UP, ActionKind.MOUSE_UP})


class TurnFacts(NamedTuple):
    """All that a reward depends on of a turn, small enough to hold a hundred thousand of them."""

    kind: ActionKind | None
    """None = nothing could be parsed."""
    x: int | None
    y: int | None
    """Where the action points, screen pixels."""
    text: str
    """What was typed, or the keys as "ctrl+s"."""
    claim: str
    """Of the action that ends the trajectory: "success" or "failure"."""
    is_refused: bool
    """By the desktop."""
    is_changed: bool
    """The screen looked different afterwards."""
    num_keys: int = 0
    """Of a chord."""
    measured: MeasuredTurn = NOT_MEASURED

    @property
    def is_executed(self) -> bool:
        """An action was parsed and the desktop did not refuse it."""
        return self.kind is not None and not self.is_refused

    @property
    def place(self) -> tuple[ActionKind | None, int | None, int | None]:
        """Kind and point; an action with half a point has none."""
        if self.x is None or self.y is None:
            return self.kind, None, None
        return self.kind, self.x, self.y


def facts_of(turn: Turn) -> TurnFacts:
    action = telling_action(turn.actions)
    return facts_of_action(action, turn.action_error, turn.screen_changed, turn.measured)


def telling_action(actions: Sequence[Action]) -> Action | None:
    """The one of a turn that says what it did: its last, unless that only waits or lets go."""
    return next((action for action in reversed(actions) if action.kind not in AFTERWARDS), None) or (
        actions[-1] if actions else None
    )


def facts_of_action(
    action: Action | None,
    action_error: str | None,
    screen_changed: bool | None,
    measured: MeasuredTurn | None,
) -> TurnFacts:
    """The facts of a turn, from the fields of `Turn` that they are in; no `action` = none was parsed."""
    is_refused, is_changed = action_error is not None, bool(screen_changed)
    measured = measured or NOT_MEASURED
    if action is None:
        return TurnFacts(None, None, None, "", "", is_refused, is_changed, measured=measured)
    text = action.text if action.text is not None else "+".join(action.keys)
    claim, num_keys = action.status or "", len(action.keys)
    return TurnFacts(action.kind, action.x, action.y, text, claim, is_refused, is_changed, num_keys, measured)


@dataclass(frozen=True, slots=True)
class ScoredTrajectory:
    turns: tuple[TurnFacts, ...]
    score: float
    """Evaluator's result in [0, 1]."""
    max_turns: int
    """Limit that the trajectory ran under."""
    milestones: tuple[int, ...] = ()
    """Of each milestone that was reached, the turn behind which it was seen first."""
    num_milestones: int = 0
    """That its task has."""

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


def fraction(marks: Sequence[bool | float]) -> TermValue:
    """Mean of the turns' marks; 0 without turns."""
    values = tuple(float(mark) for mark in marks)
    return TermValue(sum(values) / len(values) if values else 0.0, per_turn=values)


def capped_penalty(marks: Sequence[bool], rate: float, cap: float) -> TermValue:
    """min(cap, rate x share of marked turns)."""
    share = fraction(marks)
    return TermValue(min(cap, rate * share.value), per_turn=share.per_turn)
