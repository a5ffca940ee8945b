"""Snapshots that a machine keeps before turns, for branches."""

from __future__ import annotations

from datetime import datetime

from webapp.trajectories import kept_desktop_snapshots
from webapp.worker_door.rows import env_host, own_open_trajectory, own_trajectory, require_host


@env_host.report
def record_snapshot(
    trajectory_id: int, turn: int, host: str, name: str, size_mb: float, pause_s: float, took_s: float
) -> None:
    require_host(host)
    kept_desktop_snapshots.record_snapshot(
        trajectory_id=own_open_trajectory(trajectory_id).pk,
        turn=turn,
        host=host,
        name=name,
        size_mb=size_mb,
        pause_s=pause_s,
        took_s=took_s,
    )


@env_host.report
def record_snapshot_problem(trajectory_id: int, problem: str) -> None:
    """The trajectory goes on without it."""
    kept_desktop_snapshots.record_problem(trajectory_id=own_trajectory(trajectory_id).pk, problem=problem)


@env_host.report
def record_lost_snapshot(host: str, name: str) -> None:
    """The machine's desk host does not have it any more."""
    require_host(host)
    kept_desktop_snapshots.lose_snapshot(host=host, name=name)


@env_host.question
def unknown_snapshots(host: str, created: dict[str, float], asked_at: datetime) -> set[str]:
    """Of what the machine's desk host keeps (name -> seconds since the epoch), what no row knows.

    Rows of what it keeps no more are gone.
    """
    require_host(host)
    ages_s = {name: kept_desktop_snapshots.age_s(at) for name, at in created.items()}
    return kept_desktop_snapshots.reconcile_with_host(host=host, ages_s=ages_s, asked_at=asked_at)
