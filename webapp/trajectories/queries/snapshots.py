"""Snapshots of a trajectory's desktop, and whether it can have any."""

from training.contracts.config import Capability
from webapp.trajectories.models import Snapshot, Trajectory


def can_be_saved(trajectory: Trajectory) -> bool:
    """Whether its provider's desktops can be saved while they run."""
    return trajectory.desktop_config.provider_info.can(Capability.SNAPSHOT)


def snapshots_of(trajectory: Trajectory) -> dict[int, Snapshot]:
    """Turn -> snapshot before it, gone ones included: the trajectory's own, and of a branch its parents'."""
    found: dict[int, Snapshot] = {}
    bound: int | None = None
    at: Trajectory | None = trajectory
    while at is not None:
        rows = at.snapshots.all() if bound is None else at.snapshots.filter(turn__lte=bound)
        found = {row.turn: row for row in rows} | found
        turn = at.group.branch_turn
        bound = turn if bound is None or turn is None else min(bound, turn)
        at = at.group.parent
    return dict(sorted(found.items()))
