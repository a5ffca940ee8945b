"""Snapshots of trajectories' desktops: kept on request, reported by their hosts, found for a branch.

The files lie with the desk host that took them; rows here say which there are. A host drops its oldest when
it keeps too many, and what no row knows any more is dropped by the env worker that mirrors the host.
"""

from collections.abc import Mapping
from datetime import datetime

from django.db import transaction

from training.contracts.config import PROVIDERS, Capability
from training.contracts.types import TrajectoryStatus
from webapp.live.event_publishing import publish
from webapp.trajectories.models import Snapshot, SnapshotStatus, Trajectory
from webapp.trajectories.queries.snapshots import can_be_saved
from webapp.trajectories.services.announcements import stream_of

ORPHAN_AFTER_S = 120.0
"""A host knows of a snapshot before its row is written; so long it may be without one."""
SWITCHABLE = (TrajectoryStatus.QUEUED, TrajectoryStatus.RESETTING, TrajectoryStatus.RUNNING)


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


@transaction.atomic
def record_snapshot(
    *, trajectory_id: int, turn: int, host: str, name: str, size_mb: float, pause_s: float, took_s: float
) -> Snapshot:
    """The desktop's state before `turn` is kept."""
    snapshot = Snapshot.objects.create(
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
    return snapshot


@transaction.atomic
def record_problem(*, trajectory_id: int, problem: str) -> None:
    """A snapshot could not be kept (the disk is full, say); the trajectory goes on without it."""
    Trajectory.objects.filter(pk=trajectory_id).update(snapshot_problem=problem[:300])
    publish(stream_of(trajectory_id), "snapshot.failed", {"trajectory": trajectory_id})


def reconcile_with_host(*, host: str, ages_s: Mapping[str, float], asked_at: datetime) -> set[str]:
    """Compare the rows with what a host keeps: name -> age, as it answered a question asked at `asked_at`.

    Rows whose snapshot is not there any more are gone; the names that no row knows are returned.
    """
    rows = Snapshot.objects.filter(host=host, status=SnapshotStatus.KEPT)
    for row in rows.filter(created_at__lt=asked_at):
        if row.name not in ages_s:
            _lose(row)
    known = set(rows.filter(name__in=list(ages_s)).values_list("name", flat=True))
    return {name for name, age_s in ages_s.items() if name not in known and age_s > ORPHAN_AFTER_S}


@transaction.atomic
def _lose(row: Snapshot) -> None:
    if Snapshot.objects.filter(pk=row.pk, status=SnapshotStatus.KEPT).update(status=SnapshotStatus.GONE):
        payload = {"trajectory": row.trajectory_id, "turn": row.turn}
        publish(stream_of(row.trajectory_id), "snapshot.dropped", payload)


def lose_snapshot(*, host: str, name: str) -> None:
    """The host said that it has it no more."""
    for row in Snapshot.objects.filter(host=host, name=name):
        _lose(row)
