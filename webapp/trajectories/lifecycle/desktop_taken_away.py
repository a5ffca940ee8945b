"""What becomes of trajectories whose desktop an operator takes, or whose worker takes no work."""

from __future__ import annotations

from training.contracts.types import TrajectoryStatus
from webapp.trajectories.lifecycle import RUNNING, end_trajectory
from webapp.trajectories.models import Trajectory


def live_on_desktop(name: str) -> list[int]:
    """Ids of the trajectories that run on a desktop now."""
    rows = Trajectory.objects.filter(desktop__name=name, status__in=RUNNING)
    return list(rows.values_list("pk", flat=True))


def take_away(*, trajectory_id: int, error: str) -> bool:
    """An operator took its desktop: errored, and its place is run again. False when it had ended."""
    return end_trajectory(
        trajectory_id=trajectory_id,
        status=TrajectoryStatus.ERRORED,
        error=error,
        error_kind="desktop_operator",
    )


def hand_back_job(*, trajectory_id: int) -> None:
    """The worker that got the job takes nothing new: it waits in the database again."""
    Trajectory.objects.filter(pk=trajectory_id, status=TrajectoryStatus.QUEUED).update(sent_at=None)
