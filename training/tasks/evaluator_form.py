"""How a task writes its evaluator: one func or several, with one entry of each key per func."""

from typing import Any

INFEASIBLE = "infeasible"
"""The func of a task that cannot be done."""


def as_list(value: Any) -> list[Any]:
    """OSWorld writes one thing or a list of things."""
    if value is None:
        return []
    return list(value) if isinstance(value, (list, tuple)) else [value]


def column(evaluator: dict[str, Any], key: str, length: int) -> list[Any]:
    """`evaluator[key]` as one entry per func; a missing key is a column of None."""
    return as_list(evaluator[key]) if evaluator.get(key) is not None else [None] * length
