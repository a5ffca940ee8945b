"""What the API says of trajectories, snapshots and branches, and takes."""

from datetime import datetime

from ninja import Field, Schema

from training.contracts.types import Source
from training.contracts.types import Trajectory as WireTrajectory
from webapp.api.paging import Page


class TrajectoryRow(Schema):
    """A trajectory in a list."""

    id: int
    experiment_id: int | None
    group_id: int
    task_id: str = Field(alias="task.task_id")
    instruction: str = Field(alias="task.instruction")
    family: str
    purpose: str
    source: str
    status: str
    step: int
    policy_version: int | None
    num_turns: int
    num_parse_errors: int
    score: float | None
    reward: float | None
    advantage: float | None
    error: str
    parent_id: int | None = Field(None, alias="group.parent_id")
    """Of a branch: the trajectory that it was continued from."""
    branch_turn: int | None = Field(None, alias="group.branch_turn")
    """Turns before this one are the parent's, 0-based; null: no branch."""
    created_at: datetime
    ended_at: datetime | None


class BranchIn(Schema):
    """What to continue from a kept state."""

    turn: int = Field(ge=0)
    """The first turn that is taken anew, 0-based."""
    size: int = 4
    temperature: float = 1.0
    source: Source = Source.POLICY


class BranchOut(Schema):
    """The group that was queued."""

    group_id: int
    parent_id: int
    branch_turn: int
    trajectory_ids: list[int]


class KeepIn(Schema):
    """Whether to keep a snapshot before every turn from now on."""

    keep: bool


class SnapshotOut(Schema):
    """The state of a desktop before one turn."""

    trajectory_id: int
    """Whose it is: of a branch's earlier turns, the parent."""
    turn: int
    status: str
    host: str
    size_mb: float
    pause_s: float
    created_at: datetime


class TreeNode(Schema):
    """One trajectory of a tree; the root comes first, each branch below its parent."""

    trajectory_id: int
    parent_id: int | None
    branch_turn: int
    source: str
    status: str
    num_turns: int
    score: float | None
    reward: float | None


class TrajectoryDetail(Schema):
    """One trajectory with all its turns; frames are at /frames/SHA256.png (.jpg, .thumb.jpg)."""

    row: TrajectoryRow
    trajectory: WireTrajectory


class TrajectoryPage(Page[TrajectoryRow]):
    """Newest first; `next` is the `after` of the next page."""
