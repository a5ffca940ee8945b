"""What the list and the queue page show, read in few queries."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db.models import (
    Case,
    Count,
    Exists,
    F,
    IntegerField,
    Max,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    When,
)
from django.db.models.functions import Coalesce
from django.utils import timezone

from training.planning.presets import load_presets
from webapp.accounts.models import Team
from webapp.analysis.costs.cost_rows import money_text
from webapp.analysis.costs.ledger import AttemptTimes, attempt_times
from webapp.analysis.evaluations.success_pairs import (
    SuccessLine,
    SuccessPair,
    pairs_of,
    success_lines,
)
from webapp.analysis.verdict.outcomes import RunOutcome, outcome_of_run
from webapp.experiment_pages.stage_progress import is_evaluation, overall_progress
from webapp.experiments.models import (
    ACTIVE_STATUSES,
    ArmStatus,
    Evaluation,
    Experiment,
    ExperimentStatus,
    Stage,
    StageStatus,
    Sweep,
    SweepArm,
    TeamPrices,
)
from webapp.lib.request_values import row_id
from webapp.lib.tags import with_tag
from webapp.live.event_publishing import last_seq
from webapp.live.models import Stream

PAGE_SIZE = 30
ARCHIVED, ALL = "archived", "all"
"""What the filter `archived` may say; without it the list leaves archived ones out."""
COLUMNS = {
    "stage": "Stage",
    "success": "Held-out success",
    "owner": "Owner",
    "started": "Started",
    "duration": "Duration",
}
"""Columns that a person may hide: name in the URL -> label."""
OWNER_NOT_SHOWN = [
    f"owner__{name}" for name in ("password", "last_login", "date_joined", "first_name", "last_name", "email")
]
"""A row shows an owner's name alone; what is read besides costs a page of forty rows milliseconds."""
FILTERS = ("status", "preset", "owner", "tag", "archived", "q", "sort")
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


@dataclass(frozen=True, slots=True)
class SweepLine:
    sweep: Sweep
    num_ended: int
    best: float | None
    """Objective of its best arm."""

    @property
    def share(self) -> float:
        return self.num_ended / self.sweep.plan.total_arms if self.sweep.plan.total_arms else 0.0

    @property
    def took(self) -> timedelta:
        return (self.sweep.ended_at or timezone.now()) - self.sweep.created_at


@dataclass(slots=True)
class Row:
    """One line of the list."""

    experiment: Experiment
    stages: list[Stage]
    before: SuccessPair | None
    after: SuccessPair | None
    sweep: SweepLine | None = None
    """Of the first experiment of a sweep, which stands for all of it."""
    hours: AttemptTimes | None = None
    """Of its attempts; None before the first."""

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
    def money(self) -> str | None:
        """What its GPUs cost so far; None where they have no price."""
        prices: TeamPrices | None = getattr(self.experiment.team, "prices", None)
        if not (self.hours and prices and prices.gpu_hour and self.hours.gpu_hours):
            return None
        return money_text(prices, self.hours.gpu_hours * prices.gpu_hour)

    @property
    def success(self) -> list[SuccessLine]:
        """Of sampled and of greedy success, as far as there are any."""
        return success_lines(self.before or SuccessPair(), self.after or SuccessPair())

    @property
    def outcome(self) -> RunOutcome | None:
        """By its evaluations alone; None while that says no more than its status."""
        if self.is_evaluation:
            return None
        found = outcome_of_run(self.success, is_final=ExperimentStatus(self.experiment.status).is_final())
        return None if found in (RunOutcome.RUNNING, RunOutcome.UNKNOWN) else found

    @property
    def last(self) -> SuccessPair | None:
        """The newest success that is known."""
        return self.after or self.before


def filtered(team: Team, filters: dict[str, str]) -> QuerySet[Experiment]:
    """Experiments of the team that fit the URL's filters, sorted; of a sweep only its first one."""
    rows = Experiment.objects.filter(team=team).select_related("owner", "arm__sweep", "team__prices")
    rows = rows.defer("config", "arm__sweep__config", "arm__sampler_notes", *OWNER_NOT_SHOWN)
    earlier = Experiment.objects.filter(arm__sweep=OuterRef("arm__sweep"), pk__lt=OuterRef("pk"))
    rows = rows.filter(Q(arm=None) | ~Exists(earlier))
    status = filters.get("status", "")
    if status:
        # The status of a sweep is its own: its first experiment has long ended.
        wanted = UNFINISHED if status == "unfinished" else [status]
        rows = rows.annotate(shown_status=Coalesce("arm__sweep__status", "status"))
        rows = rows.filter(shown_status__in=wanted)
    if filters.get("archived") != ALL:
        rows = rows.filter(archived_at__isnull=filters.get("archived") != ARCHIVED)
    if filters.get("tag"):
        rows = rows.filter(with_tag(filters["tag"]))
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
    """The experiments with their stages, attempts and first/last evaluations: three more queries."""
    found = list(experiments)
    ids = [experiment.pk for experiment in found]
    sweeps, hours = _sweep_lines(found), attempt_times(ids)
    stages: dict[int, list[Stage]] = defaultdict(list)
    shown = Stage.objects.defer("started_at", "ended_at")
    for stage in shown.filter(experiment_id__in=ids).order_by("position"):
        stages[stage.experiment_id].append(stage)
    pairs: dict[tuple[int, str], SuccessPair] = {}
    chosen = Evaluation.objects.filter(experiment_id__in=ids, name__in=["before", "after"])
    chosen = chosen.defer("per_family", "at")
    for pair in pairs_of(chosen.order_by("id") if with_evaluations else ()):
        pairs[pair.either.experiment_id, pair.either.name] = pair
    return [
        Row(
            experiment,
            stages[experiment.pk],
            pairs.get((experiment.pk, "before")),
            pairs.get((experiment.pk, "after")),
            sweeps.get(experiment.arm_id),
            hours.get(experiment.pk),
        )
        for experiment in found
    ]


def _sweep_lines(experiments: Iterable[Experiment]) -> dict[int | None, SweepLine]:
    """arm id -> its sweep as one line; a query, where there is a sweep."""
    arms = {one.arm_id: one.arm for one in experiments if one.arm_id and "arm" in one._state.fields_cache}
    ended: dict[int, list[float | None]] = defaultdict(list)
    if arms:
        done = SweepArm.objects.filter(sweep__in={arm.sweep_id for arm in arms.values() if arm})
        for sweep_id, objective in done.exclude(status=ArmStatus.RUNNING).values_list(
            "sweep_id", "objective"
        ):
            ended[sweep_id].append(objective)
    found: dict[int | None, SweepLine] = {}
    for pk, arm in arms.items():
        assert arm is not None
        values = [value for value in ended[arm.sweep_id] if value is not None]
        best = max if arm.sweep.plan.direction == "maximise" else min
        found[pk] = SweepLine(arm.sweep, len(ended[arm.sweep_id]), best(values, default=None))
    return found


def count_and_cursor(rows: QuerySet[Experiment]) -> tuple[int, int]:
    """Experiments in the filter, and the newest event of the queue's stream; one query, unless none fits."""
    cursor = Stream.objects.filter(name="queue").values("last_seq")
    found = rows.order_by().aggregate(total=Count("pk"), cursor=Max(Subquery(cursor)))
    return (found["total"], found["cursor"] or 0) if found["total"] else (0, last_seq("queue"))


def filter_choices(team: Team) -> dict[str, list[str]]:
    rows = Experiment.objects.filter(team=team).order_by()
    found = list(rows.values_list("owner__username", "tags").distinct())
    return {
        "presets": [preset.name for preset in load_presets()],
        "owners": sorted({owner for owner, _ in found if owner}),
        "tags": sorted({tag for _, tags in found for tag in tags}),
    }


def waiting_and_active(team: Team) -> dict[str, Any]:
    """The queue page: what runs, of all teams, and what this team has paused."""
    paused = Q(team=team, status=ExperimentStatus.PAUSED)
    begun = Experiment.objects.filter(Q(status__in=ACTIVE_STATUSES) | paused).select_related("owner", "team")
    rows = list_rows(begun.defer("config").order_by("id"), with_evaluations=False)
    is_paused = [row.experiment.status == ExperimentStatus.PAUSED for row in rows]
    return {
        "active": [row for row, paused in zip(rows, is_paused, strict=True) if not paused],
        "paused": [row for row, paused in zip(rows, is_paused, strict=True) if paused][:PAGE_SIZE],
    }
