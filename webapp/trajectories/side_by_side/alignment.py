"""Trajectories of the same task aligned turn by turn, and the first turn at which they part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from webapp.trajectories.models import TurnRecord

NEAR_PX = 12
"""Points this close land on the same thing: half the height of a menu row."""
POINTS = (("x", "y"), ("to_x", "to_y"))


@dataclass(frozen=True, slots=True)
class AlignedTurn:
    """The turns with one number."""

    index: int
    turns: tuple[TurnRecord | None, ...]
    """One per trajectory; None when it has ended before."""
    deeds: tuple[int | None, ...]
    """One per trajectory: those with the same number act alike; 0 is the deed of the first that has one."""

    @property
    def is_alike(self) -> bool:
        """Whether all act alike."""
        return set(self.deeds) == {0}


@dataclass(frozen=True, slots=True)
class Alignment:
    """All turns in order."""

    rows: tuple[AlignedTurn, ...]
    divergence: int | None
    """Number of the first turn at which they do not act alike; None when they do to the end."""

    @property
    def shared(self) -> tuple[AlignedTurn, ...]:
        """What comes before the divergence."""
        return self.rows if self.divergence is None else self.rows[: self.divergence]

    @property
    def parted(self) -> tuple[AlignedTurn, ...]:
        """The divergence and what follows."""
        return () if self.divergence is None else self.rows[self.divergence :]


def align(trajectories: Sequence[Sequence[TurnRecord]]) -> Alignment:
    """By turn number: turn k of one stands beside turn k of the others."""
    length = max((len(turns) for turns in trajectories), default=0)
    rows = tuple(_row(index, trajectories) for index in range(length))
    divergence = next((row.index for row in rows if not row.is_alike), None)
    return Alignment(rows, divergence)


def _row(index: int, trajectories: Sequence[Sequence[TurnRecord]]) -> AlignedTurn:
    turns = tuple(one[index] if index < len(one) else None for one in trajectories)
    kinds: list[dict[str, Any] | None] = []
    deeds: list[int | None] = []
    for turn in turns:
        if turn is None:
            deeds.append(None)
            continue
        place = next((place for place, kind in enumerate(kinds) if act_alike(kind, turn.action)), len(kinds))
        if place == len(kinds):
            kinds.append(turn.action)
        deeds.append(place)
    return AlignedTurn(index, turns, tuple(deeds))


def act_alike(one: dict[str, Any] | None, other: dict[str, Any] | None) -> bool:
    """The same deed at about the same place; two completions without an action are alike, too."""
    if not one or not other:
        return not one and not other
    ours, theirs = (
        {key: value for key, value in action.items() if key not in ("x", "y", "to_x", "to_y") and value}
        for action in (one, other)
    )
    return ours == theirs and all(_near(one, other, point) for point in POINTS)


def _near(one: dict[str, Any], other: dict[str, Any], point: tuple[str, str]) -> bool:
    for axis in point:
        mine, theirs = one.get(axis), other.get(axis)
        if mine is None or theirs is None:
            if mine is not theirs:
                return False
        elif abs(mine - theirs) > NEAR_PX:
            return False
    return True
