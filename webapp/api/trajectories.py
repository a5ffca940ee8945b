"""/trajectories: list and read, with every turn."""

from typing import Any

from django.db.models import Q
from ninja import Field, FilterSchema, Query, Router, Status

from training.contracts.types import Purpose, Source, TrajectoryStatus
from webapp.accounts.access import MemberRequest, member
from webapp.accounts.models import Role
from webapp.api.paging import page_of
from webapp.api.trajectory_schemas import (
    BranchIn,
    BranchOut,
    KeepIn,
    SnapshotOut,
    TrajectoryDetail,
    TrajectoryPage,
    TreeNode,
)
from webapp.lib.request_values import MAX_WHOLE
from webapp.trajectories.access import get_trajectory
from webapp.trajectories.models import Trajectory
from webapp.trajectories.queries import snapshots as snapshot_queries
from webapp.trajectories.queries.branch_tree import tree_of
from webapp.trajectories.row_to_types import trajectory_of
from webapp.trajectories.services import branches, snapshots

router = Router(tags=["trajectories"])


class TrajectoryFilters(FilterSchema):
    """Narrow the list; everything may be left out."""

    experiment_id: int | None = Field(None, ge=0, le=MAX_WHOLE)
    group_id: int | None = Field(None, ge=0, le=MAX_WHOLE)
    status: TrajectoryStatus | None = None
    purpose: Purpose | None = None
    source: Source | None = None
    family: str | None = None
    finding: int | None = Field(None, ge=0, le=MAX_WHOLE)
    """Id of a scanner that found something."""

    def filter_finding(self, value: int | None) -> Q:
        return Q() if value is None else Q(findings__scanner=value, findings__outcome="found")


@router.get("", response=TrajectoryPage, operation_id="list_trajectories")
def list_trajectories(
    request: MemberRequest, filters: Query[TrajectoryFilters], after: str = "", limit: int = 50
) -> Any:
    """Trajectories of the current team, newest first."""
    rows = Trajectory.objects.filter(team=member(request).team)
    rows = filters.filter(rows.select_related("task", "group").defer("terms", "checks", "task__spec"))
    return page_of(rows, after, limit)


@router.get("/{int:pk}", response=TrajectoryDetail, operation_id="show_trajectory")
def show_trajectory(request: MemberRequest, pk: int) -> Any:
    """One trajectory with its turns, tokens, logprobs and reward breakdown."""
    row = get_trajectory(request, pk)
    return {"row": row, "trajectory": trajectory_of(row)}


@router.post("/{int:pk}/branches", response={201: BranchOut}, operation_id="branch_trajectory")
def branch_trajectory(request: MemberRequest, pk: int, body: BranchIn) -> Any:
    """Continue it from the desktop's state before a turn; 409 names the field that is to blame."""
    trajectory = get_trajectory(request, pk, Role.OPERATOR)
    wanted = branches.BranchRequest(
        turn=body.turn, size=body.size, temperature=body.temperature, source=body.source
    )
    group = branches.branch_trajectory(trajectory=trajectory, request=wanted, user=request.user)
    members = group.trajectories.order_by("member").values_list("pk", flat=True)
    made = {
        "group_id": group.pk,
        "parent_id": group.parent_id,
        "branch_turn": group.branch_turn,
        "trajectory_ids": list(members),
    }
    return Status(201, made)


@router.get("/{int:pk}/tree", response=list[TreeNode], operation_id="show_tree")
def show_tree(request: MemberRequest, pk: int) -> Any:
    """The tree of branches that it belongs to."""
    return [
        {
            "trajectory_id": row.trajectory.pk,
            "parent_id": row.parent_id,
            "branch_turn": row.offset,
            "source": row.trajectory.source,
            "status": row.trajectory.status,
            "num_turns": row.trajectory.num_turns,
            "score": row.trajectory.score,
            "reward": row.trajectory.reward,
        }
        for row in tree_of(get_trajectory(request, pk)).rows
    ]


@router.get("/{int:pk}/snapshots", response=list[SnapshotOut], operation_id="list_snapshots")
def list_snapshots(request: MemberRequest, pk: int) -> Any:
    """The states that one can branch from, its parents' included."""
    return list(snapshot_queries.snapshots_of(get_trajectory(request, pk)).values())


@router.post("/{int:pk}/snapshots", response=KeepIn, operation_id="keep_snapshots")
def keep_snapshots(request: MemberRequest, pk: int, body: KeepIn) -> Any:
    """Save the desktop before every turn from now on, or no more."""
    trajectory = get_trajectory(request, pk, Role.OPERATOR)
    snapshots.switch_snapshots(trajectory=trajectory, on=body.keep)
    return body
