"""Snapshots that this machine keeps before turns, for branches."""

from __future__ import annotations

from webapp.lib.patience import patient
from webapp.trajectories import kept_desktop_snapshots
from workers import identity
from workers.desktops.host.messages import KeptSnapshot
from workers.env.reporting.claims import TrajectoryRow


@patient
def wants_snapshots(row: TrajectoryRow) -> bool:
    """True when a person switched them on for this trajectory."""
    return kept_desktop_snapshots.wants_snapshots(trajectory_id=row.pk)


@patient
def record_snapshot(row: TrajectoryRow, index: int, kept: KeptSnapshot, took_s: float) -> None:
    kept_desktop_snapshots.record_snapshot(
        trajectory_id=row.pk,
        turn=index,
        host=identity.current().host,
        name=kept.name,
        size_mb=kept.size_mb,
        pause_s=kept.pause_s,
        took_s=round(took_s, 3),
    )


@patient
def record_problem(row: TrajectoryRow, problem: str) -> None:
    """The trajectory goes on without it."""
    kept_desktop_snapshots.record_problem(trajectory_id=row.pk, problem=problem)


@patient
def record_lost(name: str) -> None:
    """This machine's desk host does not have it any more."""
    kept_desktop_snapshots.lose_snapshot(host=identity.current().host, name=name)
