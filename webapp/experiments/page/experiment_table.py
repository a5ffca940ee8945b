"""What the list and the queue page show, read in few queries."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.db.models import Case, Count, F, IntegerField, Max, Q, QuerySet, Subquery, When
from django.utils import timezone

from training.planning.presets import load_presets
from webapp.accounts.models import Team
from webapp.experiments.evaluations.success_pairs import (
    SuccessChange,
    SuccessPair,
    change_between,
    pairs_of,
)
from webapp.experiments.lifecycle.queue_order import queue_in_order
from webapp.experiments.models import (
    ACTIVE_STATUSES,
    Evaluation,
    Experiment,
    ExperimentStatus,
    Stage,
    StageStatus,
)
from webapp.experiments.page.stage_progress import is_evaluation, overall_progress
from webapp.lib.request_values import row_id
from webapp.live.event_publishing import last_seq
from webapp.live.models import Stream

PAGE_SIZE = 40
UNFINISHED = [*ACTIVE_STATUSES, ExperimentStatus.QUEUED, ExperimentStatus.PAUSED]
SORTS = {
    "newest": ("-id",),
    "oldest": ("id",),
    "name": ("name", "-id"),
    "status": ("status_order", "-id"),
    "started": (F("started_at").desc(nulls_last=True), "-id"),
    "duration": (F("took").desc(nulls_last=True), "-id"),
    "preset": ("preset", "-id"),
}


@dataclass(slots=True)
class Row:
    """One line of the list."""

    experiment: Experiment
    stages: list[Stage]
    before: SuccessPair | None
    after: SuccessPair | None

    @property
    def stage(self) -> Stage | None:
        """The running stage, else the last one that ended."""
        running = [stage for stage in self.stages if stage.status == StageStatus.RUNNING]
        ended = [stage for stage in self.stages if stage.status == StageStatus.FINISHED]
        return running[-1] if running else ended[-1] if ended else None

    @property
    def is_evaluation(self) -> bool:
        """True for those that only measure."""
        return is_evaluation(self.stages)

    @property
    def progress(self) -> float:
        """0..1 over all stages; a stage counts as one part."""
        return overall_progress(self.stages)

    @property
    def took(self) -> timedelta | None:
        started = self.experiment.started_at
        return None if started is None else (self.experiment.ended_at or timezone.now()) - started

    @property
    def change(self) -> SuccessChange | None:
        """From before to after, without what a test of the tasks would say."""
        return change_between(self.before, self.after, {}) if self.before and self.after else None

    @property
    def success(self) -> list[tuple[str, Evaluation | None, Evaluation | None, float | None]]:
        """(kind, before, after, points gained) of sampled and of greedy success, as far as there are any."""
        before, after, change = self.before or SuccessPair(), self.after or SuccessPair(), self.change
        lines = [
            ("Sampled", before.sampled, after.sampled, change.sampled_points if change else None),
            ("Greedy", before.greedy, after.greedy, change.greedy_points if change else None),
        ]
        return [line for line in lines if line[1] or line[2]]

    @property
    def last(self) -> SuccessPair | None:
        """The newest success that is known."""
        return self.after or self.before


def filtered(team: Team, filters: dict[str, str]) -> QuerySet[Experiment]:
    """Experiments of the team that fit the URL's filters, sorted."""
    rows = Experiment.objects.filter(team=team).select_related("owner").defer("config")
    status = filters.get("status", "")
    if status == "unfinished":
        rows = rows.filter(status__in=UNFINISHED)
    elif status:
        rows = rows.filter(status=status)
    if filters.get("preset"):
        rows = rows.filter(preset=filters["preset"])
    if filters.get("owner"):
        rows = rows.filter(owner__username=filters["owner"])
    if text := filters.get("q", ""):
        pk = row_id(text.lstrip("#"))
        number = Q() if pk is None else Q(pk=pk)
        rows = rows.filter(Q(name__icontains=text) | Q(note__icontains=text) | number)
    place = [
        When(status=value, then=index) for index, value in enumerate([*UNFINISHED, "finished", "failed"])
    ]
    rows = rows.annotate(
        status_order=Case(*place, default=99, output_field=IntegerField()),
        took=F("ended_at") - F("started_at"),
    )
    return rows.order_by(*SORTS.get(filters.get("sort", ""), SORTS["newest"]))


def list_rows(experiments: Iterable[Experiment], *, with_evaluations: bool = True) -> list[Row]:
    """The experiments with their stages and first/last evaluations: two more queries."""
    found = list(experiments)
    ids = [experiment.pk for experiment in found]
    stages: dict[int, list[Stage]] = defaultdict(list)
    for stage in Stage.objects.filter(experiment_id__in=ids).order_by("position"):
        stages[stage.experiment_id].append(stage)
    pairs: dict[tuple[int, str], SuccessPair] = {}
    chosen = Evaluation.objects.filter(experiment_id__in=ids, name__in=["before", "after"])
    for pair in pairs_of(chosen.order_by("id") if with_evaluations else ()):
        pairs[pair.either.experiment_id, pair.either.name] = pair
    return [
        Row(
            experiment,
            stages[experiment.pk],
            pairs.get((experiment.pk, "before")),
            pairs.get((experiment.pk, "after")),
        )
        for experiment in found
    ]


@dataclass(frozen=True, slots=True)
class Counts:
    """What the list page knows before it reads its rows."""

    total: int
    """Experiments in the filter."""
    num_waiting: int
    """Of all teams."""
    cursor: int
    """Newest event of the queue's stream."""


def counts(rows: QuerySet[Experiment]) -> Counts:
    """One query, unless nothing fits the filter."""
    waiting = Experiment.objects.filter(status=ExperimentStatus.QUEUED).order_by()
    num_waiting = waiting.values("status").annotate(number=Count("pk")).values("number")
    cursor = Stream.objects.filter(name="queue").values("last_seq")
    found = rows.order_by().aggregate(
        total=Count("pk"), waiting=Max(Subquery(num_waiting)), cursor=Max(Subquery(cursor))
    )
    if not found["total"]:
        return Counts(0, waiting.count(), last_seq("queue"))
    return Counts(found["total"], found["waiting"] or 0, found["cursor"] or 0)


def filter_choices(team: Team) -> dict[str, list[str]]:
    """What the filters of the list offer."""
    owners = User.objects.filter(memberships__team=team).values_list("username", flat=True)
    return {
        "presets": [preset.name for preset in load_presets()],
        "owners": list(owners.order_by("username")),
    }


def waiting_and_active(team: Team) -> dict[str, Any]:
    """The queue page: what runs and what waits, in the order in which it will run, of all teams."""
    paused = Q(team=team, status=ExperimentStatus.PAUSED)
    begun = Experiment.objects.filter(Q(status__in=ACTIVE_STATUSES) | paused).select_related("owner", "team")
    rows = list_rows(begun.defer("config").order_by("id"), with_evaluations=False)
    is_paused = [row.experiment.status == ExperimentStatus.PAUSED for row in rows]
    return {
        "active": [row for row, paused in zip(rows, is_paused, strict=True) if not paused],
        "waiting": queue_in_order(),
        "paused": [row for row, paused in zip(rows, is_paused, strict=True) if paused][:PAGE_SIZE],
    }
