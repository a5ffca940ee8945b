"""Snapshots that a machine keeps before turns, for branches."""

from datetime import datetime
from typing import Annotated

from pydantic import Field

from webapp.lib.remote_calls import OwnHost, OwnOpenTrajectory, OwnTrajectory, env_host
from webapp.trajectories.queries import snapshots as snapshot_queries
from webapp.trajectories.services import snapshots

Turn = Annotated[int, Field(ge=0, lt=1 << 31)]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,40}$")]
"""The desk host makes a file of it."""
Amount = Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)]


@env_host.report
def record_snapshot(
    trajectory_id: OwnOpenTrajectory,
    turn: Turn,
    host: OwnHost,
    name: Name,
    size_mb: Amount,
    pause_s: Amount,
    took_s: Amount,
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
