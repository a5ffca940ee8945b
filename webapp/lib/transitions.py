"""Tables of status -> statuses that may follow; every change is one conditional update along its table."""

from collections.abc import Collection, Mapping
from typing import TypeVar

S = TypeVar("S", bound=str)


def sources_of(to: S, table: Mapping[S, Collection[S]]) -> set[S]:
    """Statuses from which `to` may follow."""
    return {status for status, targets in table.items() if to in targets}
