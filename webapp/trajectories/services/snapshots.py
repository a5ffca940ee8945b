"""Snapshots of trajectories' desktops: kept on request, reported by their hosts, found for a branch.

The files lie with the desk host that took them; rows here say which there are. A host drops its oldest when
it keeps too many, and what no row knows any more is dropped by the env worker that mirrors the host.
"""

from datetime import datetime
from typing import Annotated

from django.db import transaction
from django.utils import timezone
from pydantic import Field

from training.contracts.config import PROVIDERS, Capability
from training.contracts.types import TrajectoryStatus
from webapp.lib.remote_calls import OwnHost, OwnOpenTrajectory, OwnTrajectory, env_host
from webapp.live.event_publishing import publish
from webapp.trajectories.models import Snapshot, SnapshotStatus, Trajectory
from webapp.trajectories.queries.snapshots import can_be_saved
from webapp.trajectories.services.announcements import stream_of

ORPHAN_AFTER_S = 120.0
"""A host knows of a snapshot before its row is written; so long it may be without one."""
SWITCHABLE = (TrajectoryStatus.QUEUED, TrajectoryStatus.RESETTING, TrajectoryStatus.RUNNING)

Number = Annotated[int, Field(ge=0, lt=1 << 31)]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,40}$")]
"""The desk host makes a file of it."""
Amount = Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)]


class SnapshotsRefused(Exception):
    """Raised when a trajectory cannot keep snapshots; the message says why."""


def switch_snapshots(*, trajectory: Trajectory, on: bool) -> None:
    """Keep a snapshot before every turn from now on, or no more. Raises SnapshotsRefused."""
    if not can_be_saved(trajectory):
        provider = trajectory.desktop_config.provider
        known = " or ".join(name for name, info in PROVIDERS.items() if info.can(Capability.SNAPSHOT))
        raise SnapshotsRefused(f"Desktops of {provider} cannot be saved while they run; {known} can.")
    with transaction.atomic():
        running = Trajectory.objects.filter(pk=trajectory.pk, status__in=SWITCHABLE)
        if not running.update(keeps_snapshots=on, snapshot_problem=""):
            raise SnapshotsRefused("This trajectory has ended; its desktop belongs to the next one.")
        publish(stream_of(trajectory.pk), "snapshots.switched", {"trajectory": trajectory.pk, "on": on})


@env_host.report
@transaction.atomic
def record_snapshot(
    trajectory_id: OwnOpenTrajectory,
    turn: Number,
    host: OwnHost,
    name: Name,
    size_mb: Amount,
    pause_s: Amount,
    took_s: Amount,
) -> None:
    """The desktop's state before `turn` is kept."""
    Snapshot.objects.create(
        trajectory_id=trajectory_id,
        turn=turn,
        host=host,
        name=name,
        size_mb=size_mb,
        pause_s=pause_s,
        took_s=took_s,
    )
    Trajectory.objects.filter(pk=trajectory_id).exclude(snapshot_problem="").update(snapshot_problem="")
    publish(stream_of(trajectory_id), "snapshot.added", {"trajectory": trajectory_id, "turn": turn})


@env_host.report
@transaction.atomic
def record_snapshot_problem(trajectory_id: OwnTrajectory, problem: str) -> None:
    """A snapshot could not be kept (the disk is full, say); the trajectory goes on without it."""
    Trajectory.objects.filter(pk=trajectory_id).update(snapshot_problem=problem[:300])
    publish(stream_of(trajectory_id), "snapshot.failed", {"trajectory": trajectory_id})


@env_host.request
def unknown_snapshots(host: OwnHost, created: dict[str, float], asked_at: datetime) -> set[str]:
    """Of what the machine's desk host keeps (name -> seconds since the epoch), what no row knows.

    Rows of what it kept no more at `asked_at` are gone.
    """
    rows = Snapshot.objects.filter(host=host, status=SnapshotStatus.KEPT)
    for row in rows.filter(created_at__lt=asked_at):
        if row.name not in created:
            _lose(row)
    known = set(rows.filter(name__in=list(created)).values_list("name", flat=True))
    oldest = timezone.now().timestamp() - ORPHAN_AFTER_S
    return {name for name, at in created.items() if name not in known and at < oldest}


@transaction.atomic
def _lose(row: Snapshot) -> None:
    if Snapshot.objects.filter(pk=row.pk, status=SnapshotStatus.KEPT).update(status=SnapshotStatus.GONE):
        payload = {"trajectory": row.trajectory_id, "turn": row.turn}
        publish(stream_of(row.trajectory_id), "snapshot.dropped", payload)


@env_host.report
def record_lost_snapshot(host: OwnHost, name: str) -> None:
    """The host has it no more."""
    for row in Snapshot.objects.filter(host=host, name=name):
        _lose(row)
