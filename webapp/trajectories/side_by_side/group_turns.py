"""The members of a group turn by turn: which act alike, where they part, and what they did instead."""

from __future__ import annotations

from dataclasses import dataclass
from string import ascii_uppercase

from webapp.trajectories.page_queries import Lane, LaneRow
from webapp.trajectories.side_by_side.alignment import AlignedTurn, align
from webapp.trajectories.turn_display import action_caption

MAX_TURNS = 200
"""The viewer of each member has them all."""


@dataclass(frozen=True, slots=True)
class Deed:
    """What some members did at a turn."""

    letter: str
    caption: str
    num_members: int


@dataclass(frozen=True, slots=True)
class GroupTurn:
    """One turn of all members."""

    number: int
    """As people count."""
    letters: list[str]
    """One per member; "" after its end."""
    deeds: list[Deed]


@dataclass(frozen=True, slots=True)
class GroupTurns:
    """What the page shows."""

    members: list[LaneRow]
    shared: list[GroupTurn]
    """Turns that all take alike."""
    parted: list[GroupTurn]
    """From the first at which they do not."""


def group_turns(lane: Lane) -> GroupTurns | None:
    """None with fewer than two members that have acted."""
    members = [row for row in lane.rows if row.cells and not row.is_errored]
    if len(members) < 2:
        return None
    alignment = align([[cell["turn"] for cell in row.cells[:MAX_TURNS]] for row in members])
    shared, parted = ([_turn(row) for row in rows] for rows in (alignment.shared, alignment.parted))
    return GroupTurns(members, shared, parted)


def _turn(row: AlignedTurn) -> GroupTurn:
    known = [deed for deed in row.deeds if deed is not None]
    deeds = []
    for number in sorted(set(known)):
        turn = row.turns[row.deeds.index(number)]
        words = action_caption(turn.action) if turn and turn.action else "No action"
        deeds.append(Deed(letter(number), words, known.count(number)))
    return GroupTurn(row.index + 1, [letter(deed) if deed is not None else "" for deed in row.deeds], deeds)


def letter(number: int) -> str:
    return ascii_uppercase[number] if number < len(ascii_uppercase) else str(number)
