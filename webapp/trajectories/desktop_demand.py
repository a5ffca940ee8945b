"""How many desktops of which kind the queued trajectories want."""

from __future__ import annotations

from collections import Counter

from training.contracts.config import DesktopConfig
from training.contracts.types import Task, TrajectoryStatus
from webapp.experiments.models import Experiment
from webapp.experiments.stored_config import read_stored
from webapp.trajectories.lifecycle import RUNNING
from webapp.trajectories.models import Trajectory

LOOK_AHEAD = 64
"""Queued trajectories that are looked at; far more than a host has slots."""

DesktopKind = tuple[str, int, int]
"""Provider, width, height."""


def waiting_desktops() -> Counter[DesktopKind]:
    """How many queued trajectories want which kind of desktop now, the oldest ones only.

    Those that wait for others of their experiment (`desktops.num_desktops`) want none yet.
    """
    queued = Trajectory.objects.filter(status=TrajectoryStatus.QUEUED).order_by("id")
    rows = list(queued.values_list("experiment_id", "task__spec__screen", "group__desktops")[:LOOK_AHEAD])
    if not rows:
        return Counter()
    experiments = Experiment.objects.in_bulk({row[0] for row in rows if row[0]})
    found: Counter[DesktopKind] = Counter()
    num_out: Counter[int | None] = Counter(
        Trajectory.objects.filter(status__in=RUNNING).values_list("experiment_id", flat=True)
    )
    for experiment_id, screen, alone in rows:
        experiment = experiments.get(experiment_id or 0)
        desktops = experiment.settings.desktops if experiment else read_stored(DesktopConfig, alone)
        if experiment and num_out[experiment.pk] >= desktops.num_desktops:
            continue
        num_out[experiment_id] += 1
        width, height = screen or Task.model_fields["screen"].default
        found[desktops.provider, int(width), int(height)] += 1
    return found
