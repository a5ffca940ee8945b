"""A group as a lane of its members' turns, and the groups beside it."""

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Case, CharField, QuerySet, Subquery, Sum, TextField, Value, When
from django.db.models.functions import Cast, Concat

from training.contracts.number_text import plural
from training.contracts.outcome import Outcome
from training.contracts.types import Source, TrajectoryStatus
from webapp.lib.statements.json_keys import text_of
from webapp.live.models import Stream
from webapp.trajectories.alignment import turns_alike
from webapp.trajectories.models import Group, Trajectory, TurnRecord
from webapp.trajectories.queries.trajectories import brief_rows
from webapp.trajectories.turn_display import BriefTurn

MAX_LANE_TURNS = 16_000
"""Turns that one group lane reads; a group of 32 members of 500 turns still fits."""
MAX_SHOWN_CELLS = 48
"""Of a row of the lane; others come when the watched turn gets there."""
MAX_INLINE_CELLS = 160
"""Of a lane that travels with the page."""


@dataclass
class LaneRow:
    """One member of a group: its cells, and where it leaves the path of the watched member."""

    trajectory: Trajectory
    cells: list[BriefTurn] = field(default_factory=list)
    shown: list[BriefTurn] = field(default_factory=list)
    """Those cells that the lane shows at once."""
    divergence: int | None = None
    """First turn whose action differs from the watched member's."""
    is_watched: bool = False
    is_taken_over: bool = False
    """A person acted in the agent's stead: its place was run again, and it counts no more."""
    is_replaced: bool = False
    """A replay entry took its place in the optimiser's batch."""
    use: Any = None
    """The ReplayUseRecord of an injected row."""
    cursor: int = 0
    """Where the member's event stream stood before its row was read."""
    advantage_percent: float = 0.0
    """Length of its bar: of the largest |advantage| in the lane."""

    @property
    def advantage(self) -> float | None:
        """As a member, or when it was injected."""
        return self.use.advantage if self.use else self.trajectory.advantage

    @property
    def is_solved(self) -> bool:
        return self.trajectory.outcome is Outcome.SOLVED

    @property
    def is_errored(self) -> bool:
        return self.trajectory.status == TrajectoryStatus.ERRORED


@dataclass
class Lane:
    """A group as rows of turns; injected replay entries come last."""

    group: Group
    rows: list[LaneRow]
    num_columns: int
    first: int = 0
    """The turn that the first shown cell of each row stands for."""

    @property
    def beside(self) -> str:
        """Rows that hold no place of the group, in words: "1 taken over, 2 errored"; "" without any."""
        taken = sum(row.is_taken_over for row in self.rows)
        injected = sum(row.use is not None for row in self.rows)
        again = sum(row.trajectory.tries > 0 for row in self.rows if row.use is None)
        counts = ((taken, plural(taken, "human takeover")), (again, "run again"), (injected, "injected"))
        return ", ".join(f"{number} {words}" for number, words in counts if number)


def member_cursors(group: Group) -> dict[str, int]:
    """Stream -> newest event, for the streams of all members; one query."""
    names = group.trajectories.annotate(stream=Concat(Value("trajectory."), Cast("pk", CharField())))
    streams = Stream.objects.filter(name__in=names.values("stream"))
    return dict(streams.values_list("name", "last_seq"))


def group_lane(
    group: Group, watched_id: int | None, *, first: int = 0, num_shown: int = MAX_SHOWN_CELLS
) -> Lane:
    """The group's members with one cell per turn, and the replay entries that were injected into it.

    `num_shown` cells of each row from turn `first` on are marked as shown.
    """
    cursors = member_cursors(group)
    members = list(group.trajectories.select_related("desktop").order_by("member", "tries", "id"))
    uses = list(
        group.replay_uses.select_related("entry__trajectory", "entry__labelled_by").order_by("step", "id")
    )
    injected = [use.entry.trajectory for use in uses]
    cells = lane_cells([t.pk for t in members + injected], range(first, first + num_shown))
    watched = cells.get(watched_id or (members[0].pk if members else 0), [])
    replaced = {use.replaced_id for use in uses}
    rows = [
        LaneRow(
            trajectory=member,
            cells=cells[member.pk],
            divergence=first_divergence(watched, cells[member.pk]) if member.pk != watched_id else None,
            is_watched=member.pk == watched_id,
            cursor=cursors.get(f"trajectory.{member.pk}", 0),
            is_taken_over=member.source == Source.HUMAN != group.source,
            is_replaced=member.pk in replaced,
        )
        for member in members
    ]
    for use in uses:
        entry_cells = cells[use.entry.trajectory_id]
        rows.append(
            LaneRow(
                trajectory=use.entry.trajectory,
                cells=entry_cells,
                divergence=first_divergence(watched, entry_cells),
                is_watched=use.entry.trajectory_id == watched_id,
                use=use,
            )
        )
    largest = max((abs(row.advantage or 0.0) for row in rows), default=0.0) or 1.0
    for row in rows:
        row.shown = row.cells[first : first + num_shown]
        _mark_segments(row.shown)
        row.advantage_percent = round(100 * abs(row.advantage or 0.0) / largest, 1)
    num_columns = max((len(row.cells) for row in rows), default=0)
    return Lane(group=group, rows=rows, num_columns=num_columns, first=first)


def has_long_lane(group: Group) -> bool:
    """Whether its lane is fetched after the page, which would be late with it."""
    num_turns = group.trajectories.aggregate(number=Sum("num_turns"))["number"] or 0
    return num_turns > MAX_INLINE_CELLS


def _mark_segments(cells: list[BriefTurn]) -> None:
    """Say at which cells other weights began to act."""
    before = ""
    for cell in cells:
        cell.begins_segment = bool(cell.weights) and cell.weights != before
        before = cell.weights or before


def lane_cells(trajectory_ids: list[int], shown: range = range(0)) -> dict[int, list[BriefTurn]]:
    """trajectory id -> its turns; those that are shown know their weights, which their completions hold."""
    found: dict[int, list[BriefTurn]] = defaultdict(list)
    turns = TurnRecord.objects.filter(trajectory_id__in=trajectory_ids).order_by("trajectory_id", "index")
    held = (text_of("completion__policy_version"), text_of("completion__policy_versions"))
    weights = [
        Case(When(index__gte=shown.start, index__lt=shown.stop, then=text), output_field=TextField())
        for text in held
    ]
    for row in brief_rows(turns, *weights)[:MAX_LANE_TURNS]:
        found[row[0]].append(BriefTurn(*row))
    return found


def first_divergence(one: list[BriefTurn], other: list[BriefTurn]) -> int | None:
    """The first turn at which two members acted differently; None when one is a prefix of the other."""
    for mine, theirs in zip(one, other, strict=False):
        if not turns_alike(mine, theirs):
            return theirs.index
    return None


def neighbour_groups(group: Group) -> tuple[int | None, int | None]:
    """A trajectory to watch in the groups before and after, in the same experiment; for the keys [ and ].

    One query of look-ups in indexes, however many groups there are.
    """
    same = Group.objects.filter(experiment=group.experiment_id)
    if group.experiment_id is None:  # else the team is the experiment's: naming it leads to a slower index
        same = same.filter(team_id=group.team_id)
    before = _first_member(same.filter(pk__lt=group.pk).order_by("-pk"))
    after = _first_member(same.filter(pk__gt=group.pk).order_by("pk"))
    return Group.objects.values_list(before, after).get(pk=group.pk)


def _first_member(ordered: QuerySet[Group]) -> Subquery:
    members = Trajectory.objects.filter(group_id=Subquery(ordered.values("pk")[:1]))
    return Subquery(members.order_by("member", "-tries").values("pk")[:1])
