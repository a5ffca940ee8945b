"""/trajectories: list and read, with every turn."""

from typing import Any

from ninja import FilterSchema, Query, Router

from training.types import Purpose, Source, TrajectoryStatus
from webapp.api import schemas
from webapp.api.paging import page_of
from webapp.lib.access import get_trajectory, member
from webapp.lib.http import MemberRequest
from webapp.trajectories.models import Trajectory
from webapp.trajectories.wire import trajectory_of

router = Router(tags=["trajectories"])


class TrajectoryFilters(FilterSchema):
    """Narrow the list; everything may be left out."""

    experiment_id: int | None = None
    group_id: int | None = None
    status: TrajectoryStatus | None = None
    purpose: Purpose | None = None
    source: Source | None = None
    family: str | None = None


@router.get("", response=schemas.TrajectoryPage, operation_id="list_trajectories")
def list_trajectories(
    request: MemberRequest, filters: Query[TrajectoryFilters], after: str = "", limit: int = 50
) -> Any:
    """Trajectories of the current team, newest first."""
    rows = Trajectory.objects.filter(team=member(request).team)
    rows = filters.filter(rows.select_related("task").defer("terms", "task__spec"))
    return page_of(rows, after, limit)


@router.get("/{int:pk}", response=schemas.TrajectoryDetail, operation_id="show_trajectory")
def show_trajectory(request: MemberRequest, pk: int) -> Any:
    """One trajectory with its turns, tokens, logprobs and reward breakdown."""
    row = get_trajectory(request, pk)
    return {"row": row, "trajectory": trajectory_of(row)}
