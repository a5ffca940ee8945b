"""Aligned turns as a template shows them: caption, thought, and where a click landed."""

from collections.abc import Iterable
from dataclasses import dataclass

from webapp.trajectories.action_words import actions_caption, actions_of
from webapp.trajectories.alignment import AlignedTurn
from webapp.trajectories.models import TurnRecord


@dataclass(frozen=True, slots=True)
class ShownTurn:
    turn: TurnRecord
    caption: str
    x: float | None
    """Where it points to, as a share of the screen's width; None when it points nowhere."""
    y: float | None


@dataclass(frozen=True, slots=True)
class ShownRow:
    number: int
    """As people count."""
    turns: list[ShownTurn | None]


def shown_rows(rows: Iterable[AlignedTurn[TurnRecord]]) -> list[ShownRow]:
    return [ShownRow(row.index + 1, [_shown(turn) for turn in row.turns]) for row in rows]


def _shown(turn: TurnRecord | None) -> ShownTurn | None:
    if turn is None:
        return None
    action = turn.action or {}
    return ShownTurn(
        turn,
        actions_caption(actions_of(turn)),
        _share(action.get("x"), turn.width),
        _share(action.get("y"), turn.height),
    )


def _share(place: int | None, size: int) -> float | None:
    return place / size if place is not None and size else None
