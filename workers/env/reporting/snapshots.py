"""Snapshots that this machine keeps before turns, for branches."""

from __future__ import annotations

from webapp.worker_door import snapshots as door
from workers import identity
from workers.desktops.host.messages import KeptSnapshot
from workers.door.through import through
from workers.env.reporting.claims import ClaimedTrajectory
from workers.env.reporting.trajectories import look_at

_record_snapshot = through(door.record_snapshot)
_record_problem = through(door.record_snapshot_problem)
_record_lost = through(door.record_lost_snapshot)


def wants_snapshots(row: ClaimedTrajectory) -> bool:
    """True when a person switched them on for this trajectory."""
    return look_at(row.pk).wants_snapshots


def record_snapshot(row: ClaimedTrajectory, index: int, kept: KeptSnapshot, took_s: float) -> None:
    host = identity.current().host
    _record_snapshot(row.pk, index, host, kept.name, kept.size_mb, kept.pause_s, round(took_s, 3))


def record_problem(row: ClaimedTrajectory, problem: str) -> None:
    """The trajectory goes on without it."""
    _record_problem(row.pk, problem)


def record_lost(name: str) -> None:
    """This machine's desk host does not have it any more."""
    _record_lost(identity.current().host, name)
