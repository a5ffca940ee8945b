"""Trajectories of the same task aligned turn by turn, and the first turn at which they part."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from training.contracts.action import NEAR_PX

POINTS = (("x", "y"), ("to_x", "to_y"))


class Acted(Protocol):
    """What is compared of a turn."""

    @property
    def action(self) -> Any: ...

    @property
    def earlier_actions(self) -> Any: ...


T = TypeVar("T", bound=Acted)


@dataclass(frozen=True, slots=True)
class AlignedTurn(Generic[T]):
    index: int
    turns: tuple[T | None, ...]
    """One per trajectory; None when it has ended before."""
    deeds: tuple[int | None, ...]
    """One per trajectory: those with the same number act alike; 0 is the deed of the first that has one."""

    @property
    def is_alike(self) -> bool:
        return set(self.deeds) == {0}


@dataclass(frozen=True, slots=True)
class Alignment(Generic[T]):
    """All turns in order; of hundreds of them only those that are asked for are compared."""

    trajectories: Sequence[Sequence[T]]
    num_turns: int
    """Of the longest one."""
    divergence: int | None
    """Number of the first turn at which they do not act alike; None when they do to the end."""

    @property
    def num_shared(self) -> int:
        """Turns before the divergence."""
        return self.num_turns if self.divergence is None else self.divergence

    def shared(self, at_most: int) -> list[AlignedTurn[T]]:
        """The first ones before the divergence."""
        return self._rows(0, min(self.num_shared, at_most))

    def parted(self, at_most: int, first: int = 0) -> list[AlignedTurn[T]]:
        """The divergence and what follows, from the `first` of these on."""
        start = self.num_shared + first
        return self._rows(start, min(self.num_turns, start + at_most))

    def _rows(self, start: int, end: int) -> list[AlignedTurn[T]]:
        return [_row(index, self.trajectories) for index in range(start, end)]


def align(trajectories: Sequence[Sequence[T]]) -> Alignment[T]:
    """By turn number: turn k of one stands beside turn k of the others."""
    length = max((len(turns) for turns in trajectories), default=0)
    rows = (_row(index, trajectories) for index in range(length))
    return Alignment(trajectories, length, next((row.index for row in rows if not row.is_alike), None))


def _row(index: int, trajectories: Sequence[Sequence[T]]) -> AlignedTurn[T]:
    turns = tuple(one[index] if index < len(one) else None for one in trajectories)
    kinds: list[T] = []
    deeds: list[int | None] = []
    for turn in turns:
        if turn is None:
            deeds.append(None)
            continue
        place = next((place for place, kind in enumerate(kinds) if turns_alike(kind, turn)), len(kinds))
        if place == len(kinds):
            kinds.append(turn)
        deeds.append(place)
    return AlignedTurn(index, turns, tuple(deeds))


def turns_alike(one: Acted, other: Acted) -> bool:
    """Whether both did the same, action by action."""
    ours, theirs = one.earlier_actions or [], other.earlier_actions or []
    if len(ours) != len(theirs):
        return False
    return all(map(act_alike, [*ours, one.action], [*theirs, other.action]))


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
