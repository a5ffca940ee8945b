"""A trajectory with all its branches, as rows of turns under columns: what the tree page shows.

0 1 2 3 4 5        the root
|   +-2 3 4        a branch from turn 2: its column is the turn's, a line leads down to it
+-0 1 2 3          the branch with the later turn stands higher, so that no line crosses a row
"""

from collections import defaultdict
from dataclasses import dataclass, field

from django.db.models import QuerySet

from training.contracts.outcome import Outcome
from webapp.live.models import Stream
from webapp.trajectories.models import Snapshot, SnapshotStatus, Trajectory
from webapp.trajectories.queries.branches import root_of
from webapp.trajectories.queries.group_lanes import lane_cells
from webapp.trajectories.turn_display import BriefTurn

MAX_ROWS = 200


@dataclass(slots=True)
class TreeCell:
    turn: BriefTurn
    has_snapshot: bool


@dataclass
class TreeRow:
    trajectory: Trajectory
    parent_id: int | None
    offset: int
    """Column of its first own turn."""
    depth: int
    cells: list[TreeCell] = field(default_factory=list)
    """Its own turns; of a branch, without those before it."""
    rails: list[int] = field(default_factory=list)
    """Columns in which a line passes to a branch further down."""
    is_watched: bool = False
    cursor: int = 0
    """Where its event stream stood before its row was read."""

    @property
    def is_solved(self) -> bool:
        return self.trajectory.outcome is Outcome.SOLVED


@dataclass
class Tree:
    """The root first, each branch below what it was continued from."""

    root: Trajectory
    rows: list[TreeRow]
    num_columns: int
    num_left_out: int
    """Trajectories beyond MAX_ROWS."""


def count_branches(trajectory: Trajectory) -> int:
    """Trajectories in the tree of this one, without the root."""
    return sum(len(rows) for rows in _descendants(root_of(trajectory)).values())


def tree_of(trajectory: Trajectory) -> Tree:
    """The whole tree that a trajectory belongs to."""
    root = root_of(trajectory)
    children = _descendants(root)
    known = [root.pk, *(child.pk for rows in children.values() for child in rows)]
    streams = Stream.objects.filter(name__in=[f"trajectory.{pk}" for pk in known])
    cursors = dict(streams.values_list("name", "last_seq"))
    rows = _ordered(root, children)
    shown = rows[:MAX_ROWS]
    cells = lane_cells([row.trajectory.pk for row in shown])
    kept = _kept([row.trajectory.pk for row in shown])
    for row in shown:
        pk = row.trajectory.pk
        row.cells = [
            TreeCell(turn, has_snapshot=turn.index in kept[pk])
            for turn in cells[pk]
            if turn.index >= row.offset
        ]
        row.is_watched = pk == trajectory.pk
        row.cursor = cursors.get(f"trajectory.{pk}", 0)
    _draw_rails(shown)
    ends = [row.offset + max(1, len(row.cells)) for row in shown]
    return Tree(root=root, rows=shown, num_columns=max(ends), num_left_out=len(rows) - len(shown))


def _descendants(root: Trajectory) -> dict[int, list[Trajectory]]:
    """parent id -> its branches, level by level; the later turn first."""
    found: dict[int, list[Trajectory]] = defaultdict(list)
    level = [root.pk]
    while level:
        rows: QuerySet[Trajectory] = Trajectory.objects.filter(group__parent_id__in=level)
        rows = rows.select_related("group", "desktop").defer("terms", "checks")
        branches = list(rows.order_by("-group__branch_turn", "group_id", "member", "tries", "id"))
        for branch in branches:
            assert branch.group.parent_id is not None
            found[branch.group.parent_id].append(branch)
        level = [branch.pk for branch in branches]
    return found


def _ordered(root: Trajectory, children: dict[int, list[Trajectory]]) -> list[TreeRow]:
    """Depth first, without recursion: people branch from branches of branches."""
    rows: list[TreeRow] = []
    waiting = [TreeRow(root, None, 0, 0)]
    while waiting:
        row = waiting.pop()
        rows.append(row)
        for child in reversed(children.get(row.trajectory.pk, [])):
            offset = child.group.branch_turn or 0
            waiting.append(TreeRow(child, row.trajectory.pk, offset, row.depth + 1))
    return rows


def _draw_rails(rows: list[TreeRow]) -> None:
    """A line leads from each parent's row down to each of its branches, at the branch's first column."""
    places = {row.trajectory.pk: number for number, row in enumerate(rows)}
    for number, row in enumerate(rows):
        if row.parent_id is None:
            continue
        for passed in rows[places[row.parent_id] + 1 : number]:
            if row.offset not in passed.rails:
                passed.rails.append(row.offset)


def _kept(trajectory_ids: list[int]) -> dict[int, set[int]]:
    """trajectory id -> turns before which a snapshot is kept."""
    found: dict[int, set[int]] = defaultdict(set)
    rows = Snapshot.objects.filter(trajectory_id__in=trajectory_ids, status=SnapshotStatus.KEPT)
    for trajectory_id, turn in rows.values_list("trajectory_id", "turn"):
        found[trajectory_id].add(turn)
    return found
