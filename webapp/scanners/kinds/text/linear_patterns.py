"""Regular expressions that people write, by RE2 inside CEL: no pattern can take more than linear time."""

from __future__ import annotations

import re
from functools import lru_cache

from cel_expr_python import cel

COUNT = re.compile(r"(\)?)\{(\d+)(?:,(\d*))?\}")
MAX_COUNTED = 1000
"""Time is linear in the text times the counts: 35 of 900 took 300 microseconds for each character."""

UNICODE = re.compile(r"\\[pP]")
MAX_UNICODE = 20
"""A pattern is compiled for each text: 200 letters of any script took 0.3 s."""


@lru_cache(maxsize=1)
def _environment() -> cel.Env:
    return cel.NewEnv(variables={"text": cel.Type.STRING, "pattern": cel.Type.STRING})


@lru_cache(maxsize=1)
def _program() -> cel.Expression:
    return _environment().compile("text.matches(pattern)")


def check_pattern(pattern: str) -> None:
    """Raise ValueError, which says what is wrong with `pattern`. RE2 under CEL keeps nothing compiled."""
    inner, outer = 0, 1
    for is_group, low, high in COUNT.findall(pattern):
        times = max(int(low), int(high or 0), 1)
        inner, outer = (inner, outer * times) if is_group else (inner + times, outer)
    counted = max(inner, 1) * outer
    if counted > MAX_COUNTED:
        raise ValueError(f"counts more than {MAX_COUNTED} repetitions in all; count fewer")
    if len(UNICODE.findall(pattern)) * counted > MAX_UNICODE:
        raise ValueError(f"stands for more than {MAX_UNICODE} of Unicode's classes; use fewer of \\p and \\P")
    matches(pattern, "")


def matches(pattern: str, text: str) -> bool:
    """True when `pattern` matches anywhere in `text`. Raises ValueError for a bad pattern."""
    result = _program().eval(data={"text": text, "pattern": pattern})
    if result.type() != cel.Type.BOOL:
        raise ValueError(str(result.value()))
    return bool(result.value())
