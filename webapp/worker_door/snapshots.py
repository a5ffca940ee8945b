"""Snapshots that a machine keeps before turns, for branches."""

from datetime import datetime

from webapp.lib.remote_calls import OwnHost, OwnOpenTrajectory, OwnTrajectory, env_host
from webapp.trajectories.queries import snapshots as snapshot_queries
from webapp.trajectories.services import snapshots


@env_host.report
def record_snapshot(
    trajectory_id: OwnOpenTrajectory,
    turn: int,
    host: OwnHost,
    name: str,
    size_mb: float,
    pause_s: float,
    took_s: float,
) -> None:
    snapshots.record_snapshot(
        trajectory_id=trajectory_id,
        turn=turn,
        host=host,
        name=name,
        size_mb=size_mb,
        pause_s=pause_s,
        took_s=took_s,
    )


@env_host.report
def record_snapshot_problem(trajectory_id: OwnTrajectory, problem: str) -> None:
    """The trajectory goes on without it."""
    snapshots.record_problem(trajectory_id=trajectory_id, problem=problem)


@env_host.report
def record_lost_snapshot(host: OwnHost, name: str) -> None:
    """The machine's desk host does not have it any more."""
    snapshots.lose_snapshot(host=host, name=name)


@env_host.request
def unknown_snapshots(host: OwnHost, created: dict[str, float], asked_at: datetime) -> set[str]:
    """Of what the machine's desk host keeps (name -> seconds since the epoch), what no row knows.

    Rows of what it keeps no more are gone.
    """
    ages_s = {name: snapshot_queries.age_s(at) for name, at in created.items()}
    return snapshots.reconcile_with_host(host=host, ages_s=ages_s, asked_at=asked_at)
