"""The members of a group turn by turn: which act alike, where they part, and what they did instead."""

from dataclasses import dataclass
from string import ascii_uppercase

from webapp.trajectories.action_words import actions_caption, actions_of
from webapp.trajectories.alignment import AlignedTurn, align
from webapp.trajectories.queries.group_lanes import Lane, LaneRow
from webapp.trajectories.turn_display import BriefTurn

MAX_AT_ONCE = 40
"""Turns that the page shows; it is turned over to the others."""


@dataclass(frozen=True, slots=True)
class Deed:
    """What some members did at a turn."""

    letter: str
    caption: str
    num_members: int


@dataclass(frozen=True, slots=True)
class GroupTurn:
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
    """The first of the turns that all take alike."""
    num_shared: int
    parted: list[GroupTurn]
    """The shown ones of those from the first on at which they do not."""
    num_parted: int
    first: int
    """How many of the parted ones come before those shown."""

    @property
    def earlier(self) -> int | None:
        """`first` of the page before; None on the first one."""
        return max(0, self.first - MAX_AT_ONCE) if self.first else None

    @property
    def later(self) -> int | None:
        """`first` of the page after; None on the last one."""
        after = self.first + len(self.parted)
        return after if after < self.num_parted else None


def group_turns(lane: Lane, first: int = 0) -> GroupTurns | None:
    """The page from the parted turn `first` on. None with fewer than two members that have acted."""
    members = [row for row in lane.rows if row.cells and not row.is_errored]
    if len(members) < 2:
        return None
    alignment = align([row.cells for row in members])
    num_parted = alignment.num_turns - alignment.num_shared
    first = first if first < num_parted else 0
    return GroupTurns(
        members=members,
        shared=[_turn(row) for row in alignment.shared(MAX_AT_ONCE)],
        num_shared=alignment.num_shared,
        parted=[_turn(row) for row in alignment.parted(MAX_AT_ONCE, first)],
        num_parted=num_parted,
        first=first,
    )


def _turn(row: AlignedTurn[BriefTurn]) -> GroupTurn:
    known = [deed for deed in row.deeds if deed is not None]
    deeds = []
    for number in sorted(set(known)):
        turn = row.turns[row.deeds.index(number)]
        words = actions_caption(actions_of(turn)) if turn and turn.action else "No action"
        deeds.append(Deed(letter(number), words, known.count(number)))
    return GroupTurn(row.index + 1, [letter(deed) if deed is not None else "" for deed in row.deeds], deeds)


def letter(number: int) -> str:
    return ascii_uppercase[number] if number < len(ascii_uppercase) else str(number)
