"""What became of an entry's task after it was injected, beside the tasks of the same steps without one."""

from dataclasses import dataclass

from django.db.models import Count, Min, Q, QuerySet

from training.contracts.types import Purpose, Source
from webapp.experiments.models import Experiment
from webapp.experiments.queries.outcomes import solved_by_agent
from webapp.experiments.queries.rows_behind_resume import lost_trajectories
from webapp.replay.models import ReplayEntry, ReplayUseRecord
from webapp.trajectories.models import Trajectory

WINDOW = 20
"""Steps before and after the first injection that are looked at."""
MAX_EXPERIMENTS = 5


@dataclass(frozen=True, slots=True)
class Change:
    """Tries, and those that solved the task, up to the first injection and after it."""

    num_before: int
    solved_before: int
    num_after: int
    solved_after: int

    @property
    def before(self) -> float | None:
        return self.solved_before / self.num_before if self.num_before else None

    @property
    def after(self) -> float | None:
        return self.solved_after / self.num_after if self.num_after else None

    @property
    def difference(self) -> float | None:
        if self.before is None or self.after is None:
            return None
        return self.after - self.before


@dataclass(frozen=True, slots=True)
class Effect:
    """Of an entry in one experiment."""

    experiment: Experiment
    first_step: int
    task: Change
    others: Change
    """Tasks of the same experiment into which nothing was injected in these steps."""

    @property
    def beyond_others(self) -> float | None:
        """By how much more its task rose than the others; None while one of them is unknown."""
        if self.task.difference is None or self.others.difference is None:
            return None
        return self.task.difference - self.others.difference


def effects_of(entry: ReplayEntry) -> list[Effect]:
    """The newest experiments that used it; two queries for each."""
    uses = ReplayUseRecord.objects.filter(entry=entry).order_by("-experiment_id")
    firsts = list(uses.values_list("experiment_id").annotate(first=Min("step"))[:MAX_EXPERIMENTS])
    experiments = Experiment.objects.in_bulk([pk for pk, _ in firsts])
    return [_effect(entry, experiments[pk], first) for pk, first in firsts]


def _effect(entry: ReplayEntry, experiment: Experiment, first: int) -> Effect:
    steps = (first - WINDOW + 1, first + WINDOW)
    injected = ReplayUseRecord.objects.filter(experiment=experiment, step__range=steps)
    rows = Trajectory.objects.filter(
        experiment=experiment,
        purpose=Purpose.TRAIN,
        source=Source.POLICY,
        score__isnull=False,
        step__range=steps,
    ).exclude(lost_trajectories())
    own = entry.trajectory.task_id
    others = rows.exclude(task__in=injected.values("group__task"))
    return Effect(
        experiment=experiment,
        first_step=first,
        task=_change(rows.filter(task=own), first),
        others=_change(others.exclude(task=own), first),
    )


def _change(rows: QuerySet[Trajectory], first: int) -> Change:
    """The step of the first injection trained on it at its end: its own tries came before."""
    before, after = Q(step__lte=first), Q(step__gt=first)
    return Change(
        **rows.aggregate(
            num_before=Count("id", filter=before),
            solved_before=Count("id", filter=before & solved_by_agent()),
            num_after=Count("id", filter=after),
            solved_after=Count("id", filter=after & solved_by_agent()),
        )
    )
