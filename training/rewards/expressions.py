"""Terms that people write themselves, in CEL (cel.dev): typed, without loops, clocks or dice.

Every number is a `double`: `1` is read as `1.0`, so that `1 / 2` is a half, and as a whole number only where
that does not fit, as in `[4, 5][1]`. The library is Google's own, of which one version is pinned: a stored
reward has to come out the same on every machine.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from cel_expr_python import cel
from cel_expr_python.ext import ext_math

from training.contracts.config.reward_presets import RewardPreset, WeightedTerm
from training.rewards.expression_fields import OF_TRAJECTORIES, OF_TURNS, TurnPlace
from training.rewards.term import ScoredTrajectory, TermValue, TurnFacts, fraction
from training.rewards.terms import TERMS

Values = dict[str, Any]

WORD = re.compile(r"[A-Za-z_]\w*")
TOKEN = re.compile(
    r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|[A-Za-z_]\w*|[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?[uU]?"""
)
WHOLE = re.compile(r"[0-9]+")
NO_LOOPS = "stdlib:\n  disable_macros: true\n  exclude_functions:\n    - name: matches\n"
"""Macros are CEL's only loops; without them an expression takes time by its length alone.

Patterns are compiled for every turn: one of 20 characters took 0.3 s, and held the whole interpreter.
"""
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
    is_of_turn = row.count != "once"
    program = _compiled(row.expression, is_of_turn)
    values: Values = {name: OF_TRAJECTORIES[name].value(trajectory) for name in program.of_trajectory}
    if not is_of_turn:
        return TermValue(_number(row, program, values))
    marks = []
    for place in _places(trajectory):
        values |= {name: OF_TURNS[name].value(place) for name in program.of_turn}
        marks.append(_number(row, program, values))
    if row.count == "mean":
        return fraction(marks)
    if row.count == "sum":
        return TermValue(sum(marks), "", tuple(marks))
    best = max(marks, default=0.0)
    return TermValue(best, "", tuple(float(mark == best) for mark in marks))


def _number(row: WeightedTerm, program: Program, values: Values) -> float:
    result = program.expression.eval(data=values)
    value = result.value()
    if result.type() not in NUMBERS or not math.isfinite(value):
        raise TermError(f"{row.term}: {row.expression} gives {value}, which is no reward")
    return float(value)


@dataclass(frozen=True, slots=True)
class Program:
    """A compiled expression and the fields that it can name; the others are never worked out."""

    expression: cel.Expression
    of_trajectory: tuple[str, ...]
    of_turn: tuple[str, ...]


@lru_cache(maxsize=512)
def _compiled(expression: str, is_of_turn: bool) -> Program:
    environment = _environment(is_of_turn)
    try:
        compiled = environment.compile(_with_doubles(expression))
    except RuntimeError:  # the library has no type of its own for them
        try:
            compiled = environment.compile(expression)
        except RuntimeError as error:
            raise TermError(_plain(str(error))) from error
    if compiled.return_type() not in NUMBERS:
        raise TermError(f"must be a number or true/false, not {compiled.return_type().name().lower()}")
    words = set(WORD.findall(expression))  # also of its texts: too many fields do no harm
    of_turn = tuple(name for name in OF_TURNS if name in words) if is_of_turn else ()
    return Program(compiled, tuple(name for name in OF_TRAJECTORIES if name in words), of_turn)


def _with_doubles(expression: str) -> str:
    """With a point behind each whole number that is no part of a text or a name: "num_turns > 3.0"."""
    return TOKEN.sub(lambda found: f"{found[0]}.0" if WHOLE.fullmatch(found[0]) else found[0], expression)


@lru_cache(maxsize=2)
def _environment(is_of_turn: bool) -> cel.Env:
    fields = OF_TRAJECTORIES | OF_TURNS if is_of_turn else OF_TRAJECTORIES
    return cel.NewEnv(
        config=cel.NewEnvConfigFromYaml(NO_LOOPS),
        variables={name: field.kind for name, field in fields.items()},
        extensions=[ext_math.ExtMath()],
    )


def _places(trajectory: ScoredTrajectory) -> Iterator[TurnPlace]:
    last = trajectory.num_turns - 1
    before: TurnFacts | None = None
    for index, turn in enumerate(trajectory.turns):
        yield TurnPlace(turn, before, index, index == last, trajectory.milestones.count(index))
        before = turn


def _plain(message: str) -> str:
    """The library's first error: where and what, without its picture of the line."""
    found = re.search(r"<input>:1:(\d+): (.*)", message)
    if found is None:
        return message.partition("\n")[0]
    text = found[2].replace(" (in container '')", "").removesuffix(" [INVALID_ARGUMENT]")
    return f"column {found[1]}: {text}"
