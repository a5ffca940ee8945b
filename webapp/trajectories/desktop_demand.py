"""Trajectories as the fleet sees them: what they wait for, and what happens when a desktop is taken away."""

from __future__ import annotations

from collections import Counter

from training.contracts.types import Task, TrajectoryStatus
from webapp.experiments.models import Experiment
from webapp.trajectories.lifecycle import RUNNING, end_trajectory
from webapp.trajectories.models import Trajectory

LOOK_AHEAD = 64
"""Queued trajectories that are looked at; far more than a host has slots."""

DesktopKind = tuple[str, int, int]
"""Provider, width, height."""


def waiting_desktops() -> Counter[DesktopKind]:
    """How many queued trajectories want which kind of desktop now, the oldest ones only.

    Those that wait for others of their experiment (`desktops.num_desktops`) want none yet.
    """
    queued = Trajectory.objects.filter(status=TrajectoryStatus.QUEUED).select_related("group", "task")
    rows = list(queued.order_by("id")[:LOOK_AHEAD])
    experiments = Experiment.objects.in_bulk({row.experiment_id for row in rows if row.experiment_id})
    found: Counter[DesktopKind] = Counter()
    num_out: Counter[int | None] = Counter(
        Trajectory.objects.filter(status__in=RUNNING).values_list("experiment_id", flat=True)
    )
    for row in rows:
        experiment = experiments.get(row.experiment_id or 0)
        desktops = experiment.settings.desktops if experiment else row.group.desktop_config
        if experiment and num_out[experiment.pk] >= desktops.num_desktops:
            continue
        num_out[row.experiment_id] += 1
        width, height = row.task.spec.get("screen") or Task.model_fields["screen"].default
        found[desktops.provider, int(width), int(height)] += 1
    return found


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
