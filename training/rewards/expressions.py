"""Terms that people write themselves, in CEL (cel.dev): typed, without loops, clocks or dice.

Every number is a `double`, so `1.0` and not `1`. The library is Google's own, of which one version is pinned:
a stored reward has to come out the same on every machine.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from typing import Any

from cel_expr_python import cel
from cel_expr_python.ext import ext_math

from training.contracts.config.reward_presets import RewardPreset, WeightedTerm
from training.contracts.types import ActionKind
from training.rewards.term import ScoredTrajectory, TermValue, TurnFacts, fraction
from training.rewards.terms import TERMS

Values = dict[str, Any]

OF_TRAJECTORIES: dict[str, tuple[cel.Type, str]] = {
    "score": (cel.Type.DOUBLE, "what the evaluator says, 0 to 1"),
    "num_turns": (cel.Type.DOUBLE, "turns taken"),
    "max_turns": (cel.Type.DOUBLE, "limit that it ran under"),
    "num_parsed": (cel.Type.DOUBLE, "turns whose completion held an action"),
    "num_executed": (cel.Type.DOUBLE, "turns whose action the desktop carried out"),
    "num_changed": (cel.Type.DOUBLE, "turns after which the screen looked different"),
    "num_waits": (cel.Type.DOUBLE, "turns that only waited"),
    "num_repeats": (cel.Type.DOUBLE, "turns with kind and point of the one before"),
    "num_kinds": (cel.Type.DOUBLE, "different kinds of actions"),
    "claim": (cel.Type.STRING, 'what the agent ended it with: "success", "failure" or ""'),
}
"""Name -> type and meaning of every field of every expression."""
OF_TURNS: dict[str, tuple[cel.Type, str]] = {
    "index": (cel.Type.DOUBLE, "of the turn, from 0"),
    "kind": (cel.Type.STRING, '"click", "type", "key" ...; "" when nothing could be parsed'),
    "text": (cel.Type.STRING, 'typed text, or keys as "ctrl+s"'),
    "x": (cel.Type.DOUBLE, "screen pixels; -1 without a point"),
    "y": (cel.Type.DOUBLE, "screen pixels; -1 without a point"),
    "parsed": (cel.Type.BOOL, "the completion held an action"),
    "executed": (cel.Type.BOOL, "the desktop carried it out"),
    "changed": (cel.Type.BOOL, "the screen looked different afterwards"),
    "repeated": (cel.Type.BOOL, "kind and point of the turn before"),
    "is_last": (cel.Type.BOOL, "no turn followed"),
}
"""The same of what is counted by turn."""

NO_LOOPS = "stdlib:\n  disable_macros: true\n"
"""Macros are CEL's only loops; without them an expression takes time by its length alone."""
NUMBERS = (cel.Type.DOUBLE, cel.Type.INT, cel.Type.BOOL)


class TermError(ValueError):
    """Raised where an expression has no value, so that there is no reward."""


def preset_problems(preset: RewardPreset) -> Iterator[tuple[int, str]]:
    """(place of the term, what is wrong with it) of terms that are not known or do not compile."""
    for place, row in enumerate(preset.terms):
        if not row.expression:
            if row.term not in TERMS:
                yield place, f"unknown term {row.term!r}; give it an expression, or take one of the list"
            continue
        try:
            _compiled(row.expression, row.count != "once")
        except TermError as error:
            yield place, str(error)


def expression_value(row: WeightedTerm, trajectory: ScoredTrajectory) -> TermValue:
    """The value of a term that is an expression. Raises TermError."""
    values = _values_of(trajectory)
    if row.count == "once":
        return TermValue(_number(row, values))
    marks = [_number(row, values | more) for more in _values_of_turns(trajectory)]
    if row.count == "mean":
        return fraction(marks)
    if row.count == "sum":
        return TermValue(sum(marks), "", tuple(marks))
    best = max(marks, default=0.0)
    return TermValue(best, "", tuple(float(mark == best) for mark in marks))


def _number(row: WeightedTerm, values: Values) -> float:
    result = _compiled(row.expression, row.count != "once").eval(data=values)
    value = result.value()
    if result.type() not in NUMBERS or not math.isfinite(value):
        raise TermError(f"{row.term}: {row.expression} gives {value}, which is no reward")
    return float(value)


@lru_cache(maxsize=512)
def _compiled(expression: str, is_of_turn: bool) -> cel.Expression:
    try:
        compiled = _environment(is_of_turn).compile(expression)
    except RuntimeError as error:  # the library has no type of its own for them
        raise TermError(_plain(str(error))) from error
    if compiled.return_type() not in NUMBERS:
        raise TermError(f"must be a number or true/false, not {compiled.return_type().name().lower()}")
    return compiled


@lru_cache(maxsize=2)
def _environment(is_of_turn: bool) -> cel.Env:
    fields = OF_TRAJECTORIES | OF_TURNS if is_of_turn else OF_TRAJECTORIES
    return cel.NewEnv(
        config=cel.NewEnvConfigFromYaml(NO_LOOPS),
        variables={name: kind for name, (kind, _) in fields.items()},
        extensions=[ext_math.ExtMath()],
    )


def _plain(message: str) -> str:
    """The library's first error: where and what, without its picture of the line."""
    found = re.search(r"<input>:1:(\d+): (.*)", message)
    if found is None:
        return message.partition("\n")[0]
    text = found[2].replace(" (in container '')", "").removesuffix(" [INVALID_ARGUMENT]")
    hint = "; numbers are written with a point: 1.0" if "double" in text and "int" in text else ""
    return f"column {found[1]}: {text}{hint}"


def _values_of(trajectory: ScoredTrajectory) -> Values:
    turns = trajectory.turns
    return {
        "score": trajectory.score,
        "num_turns": float(len(turns)),
        "max_turns": float(trajectory.max_turns),
        "num_parsed": float(sum(turn.kind is not None for turn in turns)),
        "num_executed": float(sum(turn.is_executed for turn in turns)),
        "num_changed": float(sum(turn.is_changed for turn in turns)),
        "num_waits": float(sum(turn.kind is ActionKind.WAIT for turn in turns)),
        "num_repeats": float(sum(before.place == turn.place for before, turn in pairwise(turns))),
        "num_kinds": float(len({turn.kind for turn in turns if turn.kind is not None})),
        "claim": turns[-1].claim if turns else "",
    }


def _values_of_turns(trajectory: ScoredTrajectory) -> Iterator[Values]:
    last = trajectory.num_turns - 1
    before: TurnFacts | None = None
    for index, turn in enumerate(trajectory.turns):
        yield {
            "index": float(index),
            "kind": turn.kind.value if turn.kind else "",
            "text": turn.text,
            "x": -1.0 if turn.x is None else float(turn.x),
            "y": -1.0 if turn.y is None else float(turn.y),
            "parsed": turn.kind is not None,
            "executed": turn.is_executed,
            "changed": turn.is_changed,
            "repeated": before is not None and before.place == turn.place,
            "is_last": index == last,
        }
        before = turn
