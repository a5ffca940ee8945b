"""What expressions may name: fields of a trajectory and of a turn, each with its type and how it is found."""

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

from cel_expr_python import cel

from training.contracts.types import ActionKind
from training.rewards.term import ScoredTrajectory, TurnFacts

FieldValue = float | str | bool


class TrajectoryField(NamedTuple):
    kind: cel.Type
    meaning: str
    value: Callable[[ScoredTrajectory], FieldValue]


class TurnPlace(NamedTuple):
    """A turn among the others of its trajectory."""

    turn: TurnFacts
    before: TurnFacts | None
    number: int
    """From 0."""
    is_last: bool
    num_milestones: int
    """That were seen first behind it."""


class TurnField(NamedTuple):
    kind: cel.Type
    meaning: str
    value: Callable[[TurnPlace], FieldValue]


def _num_repeats(trajectory: ScoredTrajectory) -> float:
    return float(sum(before.place == turn.place for before, turn in pairwise(trajectory.turns)))


DOUBLE, STRING, BOOL = cel.Type.DOUBLE, cel.Type.STRING, cel.Type.BOOL

OF_TRAJECTORIES: dict[str, TrajectoryField] = {
    "score": TrajectoryField(DOUBLE, "what the evaluator says, 0 to 1", lambda one: one.score),
    "num_turns": TrajectoryField(DOUBLE, "turns taken", lambda one: float(one.num_turns)),
    "max_turns": TrajectoryField(DOUBLE, "limit that it ran under", lambda one: float(one.max_turns)),
    "num_parsed": TrajectoryField(
        DOUBLE,
        "turns whose completion held an action",
        lambda one: float(sum(turn.kind is not None for turn in one.turns)),
    ),
    "num_executed": TrajectoryField(
        DOUBLE,
        "turns whose action the desktop carried out",
        lambda one: float(sum(turn.is_executed for turn in one.turns)),
    ),
    "num_changed": TrajectoryField(
        DOUBLE,
        "turns after which the screen looked different",
        lambda one: float(sum(turn.is_changed for turn in one.turns)),
    ),
    "num_waits": TrajectoryField(
        DOUBLE,
        "turns that only waited",
        lambda one: float(sum(turn.kind is ActionKind.WAIT for turn in one.turns)),
    ),
    "num_repeats": TrajectoryField(DOUBLE, "turns with kind and point of the one before", _num_repeats),
    "num_kinds": TrajectoryField(
        DOUBLE,
        "different kinds of actions",
        lambda one: float(len({turn.kind for turn in one.turns if turn.kind is not None})),
    ),
    "num_milestones": TrajectoryField(
        DOUBLE, "milestones of its task that it reached", lambda one: float(len(one.milestones))
    ),
    "milestone_share": TrajectoryField(
        DOUBLE,
        "the same as a share, 0 to 1; 0 where the task has none",
        lambda one: len(one.milestones) / one.num_milestones if one.num_milestones else 0.0,
    ),
    "claim": TrajectoryField(
        STRING,
        'what the agent ended it with: "success", "failure" or ""',
        lambda one: one.turns[-1].claim if one.turns else "",
    ),
}

OF_TURNS: dict[str, TurnField] = {
    "index": TurnField(DOUBLE, "of the turn, from 0", lambda at: float(at.number)),
    "kind": TurnField(
        STRING,
        '"click", "type", "key" ...; "" when nothing could be parsed',
        lambda at: at.turn.kind.value if at.turn.kind else "",
    ),
    "text": TurnField(STRING, 'typed text, or keys as "ctrl+s"', lambda at: at.turn.text),
    "x": TurnField(DOUBLE, "screen pixels; -1 without a point", lambda at: _or_minus_1(at.turn.x)),
    "y": TurnField(DOUBLE, "screen pixels; -1 without a point", lambda at: _or_minus_1(at.turn.y)),
    "parsed": TurnField(BOOL, "the completion held an action", lambda at: at.turn.kind is not None),
    "executed": TurnField(BOOL, "the desktop carried it out", lambda at: at.turn.is_executed),
    "changed": TurnField(BOOL, "the screen looked different afterwards", lambda at: at.turn.is_changed),
    "difference": TurnField(
        DOUBLE, "how much the screen changed, 0 to 1", lambda at: at.turn.measured.screen_difference or 0.0
    ),
    "grounded": TurnField(
        BOOL,
        "the accessibility tree before it held its text or key",
        lambda at: bool(at.turn.measured.is_grounded),
    ),
    "tree_before": TurnField(
        DOUBLE,
        "characters of the accessibility tree before it; -1 without one",
        lambda at: _or_minus_1(at.turn.measured.tree_before),
    ),
    "tree_after": TurnField(DOUBLE, "the same after it", lambda at: _or_minus_1(at.turn.measured.tree_after)),
    "terminal_changed": TurnField(
        BOOL,
        "the terminal showed another text afterwards",
        lambda at: bool(at.turn.measured.terminal_changed),
    ),
    "repeated": TurnField(
        BOOL,
        "kind and point of the turn before",
        lambda at: at.before is not None and at.before.place == at.turn.place,
    ),
    "is_last": TurnField(BOOL, "no turn followed", lambda at: at.is_last),
    "milestones": TurnField(
        DOUBLE, "milestones that were reached first by it", lambda at: float(at.num_milestones)
    ),
}


def _or_minus_1(value: int | None) -> float:
    return -1.0 if value is None else float(value)
