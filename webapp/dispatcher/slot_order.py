"""In which order waiting trajectories get the free slots.

    people at desktops -> higher priority -> team, then experiment, with fewest in flight -> oldest

So a slot that one experiment may not use (it runs as many desktops as it asked for) goes to the next one,
and an experiment that queued thousands does not hold up those that came after it.
"""

from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class WaitingTrajectory:
    pk: int
    is_parked: bool = False
    """It has its place among the experiment's desktops already."""
    is_human: bool = False
    """A person sits in front of it, or asked for it just now."""
    host: str = ""
    """The machine that has to run it; "" = any."""


@dataclass(slots=True, kw_only=True)
class WaitingLine:
    """What waits of one experiment, or of one team outside of any."""

    team_id: int
    priority: int = 0
    num_out: int = 0
    """Its trajectories that hold a slot or are on their way to one."""
    room: int
    """How many more it may have out."""
    rows: deque[WaitingTrajectory] = field(default_factory=deque)
    """Next one first."""

    def first(self) -> WaitingTrajectory | None:
        """The row that may go next; parked ones may also when there is no room."""
        return next((row for row in self.rows if row.is_parked or self.room > 0), None)

    def take(self, row: WaitingTrajectory) -> None:
        self.rows.remove(row)
        self.room -= not row.is_parked
        self.num_out += 1


def fair_order(lines: Sequence[WaitingLine], room: Mapping[int, int] | None = None) -> Iterator[int]:
    """Ids of all rows that may go, the next one first; stop reading when the slots are used up.

    room: team -> how many more of it the hosts that work for it take; a team without an entry has no limit.
    """
    left = dict(room or {})
    num_out = Counter[int]()
    for line in lines:
        num_out[line.team_id] += line.num_out

    def place(line: WaitingLine) -> tuple[object, ...]:
        row = line.first()
        assert row is not None, "lines without a row that may go are left out"
        return not row.is_human, -line.priority, num_out[line.team_id], line.num_out, row.pk

    while able := [line for line in lines if line.first() and left.get(line.team_id, 1) > 0]:
        line = min(able, key=place)
        row = line.first()
        assert row is not None
        line.take(row)
        num_out[line.team_id] += 1
        if line.team_id in left:
            left[line.team_id] -= 1
        yield row.pk
