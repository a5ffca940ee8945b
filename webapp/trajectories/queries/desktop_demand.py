"""How many desktops of which kind the queued trajectories want."""

from collections import Counter

from django.db.models import Count, QuerySet

from training.contracts.config import DesktopConfig
from training.contracts.types import Task, TrajectoryStatus
from webapp.experiments.models import Experiment
from webapp.experiments.stored_config import read_stored
from webapp.lib.statements.short_statements import Sql, compiled
from webapp.trajectories.models import RUNNING, Trajectory

LOOK_AHEAD = 64
"""Queued trajectories that are looked at; far more than a host has slots."""

DesktopKind = tuple[str, int, int]
"""Provider, width, height."""


def queued_sql() -> Sql:
    """Whether any are queued, as a part of what mirrors ask with each round."""
    return compiled(_queued)


def waiting_desktops(team_id: int | None = None) -> Counter[DesktopKind]:
    """How many queued trajectories, of one team or of all, want which kind of desktop now: the oldest ones.

    Those that wait for others of their experiment (`desktops.num_desktops`) want none yet.
    """
    queued = _queued() if team_id is None else _queued().filter(team=team_id)
    rows = list(
        queued.order_by("id").values_list("experiment_id", "task__spec__screen", "group__desktops")[
            :LOOK_AHEAD
        ]
    )
    if not rows:
        return Counter()
    experiments = Experiment.objects.in_bulk({row[0] for row in rows if row[0]})
    found: Counter[DesktopKind] = Counter()
    running = Trajectory.objects.filter(status__in=RUNNING, experiment__in=experiments).order_by()
    counts = running.values_list("experiment_id").annotate(Count("pk"))
    num_out: Counter[int | None] = Counter(dict(counts))
    for experiment_id, screen, alone in rows:
        experiment = experiments.get(experiment_id or 0)
        desktops = experiment.settings.desktops if experiment else read_stored(DesktopConfig, alone)
        if experiment and num_out[experiment.pk] >= desktops.num_desktops:
            continue
        num_out[experiment_id] += 1
        width, height = screen or Task.model_fields["screen"].default
        found[desktops.provider, int(width), int(height)] += 1
    return found


def _queued() -> QuerySet[Trajectory]:
    return Trajectory.objects.filter(status=TrajectoryStatus.QUEUED)
