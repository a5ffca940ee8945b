"""How far the stages of an experiment are, and how long they still take."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from statistics import median
from typing import Any

from django.db.models import OuterRef, Prefetch, QuerySet, Subquery, prefetch_related_objects
from django.utils import timezone

from training.contracts.stage_names import ONLY_EVALUATION, StageName
from webapp.experiments.models import (
    ACTIVE_STATUSES,
    Attempt,
    Experiment,
    ExperimentStatus,
    Stage,
    StageStatus,
)
from webapp.launch.preflight.duration import NUM_REMEMBERED, stage_seconds
from webapp.ui.templatetags.deskhand import stage_title


def is_evaluation(stages: list[Stage]) -> bool:
    """True for the stages of an experiment that only measures."""
    return tuple(stage.name for stage in stages) == ONLY_EVALUATION


def stage_fraction(stage: Stage) -> float:
    """0..1 of one stage."""
    if stage.status == StageStatus.FINISHED:
        return 1.0
    return min(1.0, stage.done / stage.total) if stage.total else 0.0


def overall_progress(stages: list[Stage]) -> float:
    return sum(map(stage_fraction, stages)) / len(stages) if stages else 0.0


@dataclass(frozen=True, slots=True)
class StageView:
    """One step of the stepper."""

    stage: Stage
    title: str
    percent: float
    seconds: float | None
    """How long it took, or has been running."""
    eta: float | None
    """Seconds to its end; running stages with some progress only."""


def stage_views(experiment: Experiment) -> list[StageView]:
    # Read once, also where several parts of a page show them.
    prefetch_related_objects([experiment], Prefetch("stages", _with_attempt()))
    now, stages = timezone.now(), list(experiment.stages.all())
    is_active = experiment.status in ACTIVE_STATUSES
    until = now if is_active else experiment.ended_at  # a failed one is over
    # Until a further attempt runs, a stage still says how far the one before it came.
    has_pace = is_active and experiment.status != ExperimentStatus.STARTING
    return [
        StageView(
            stage,
            "Held-out evaluation" if is_evaluation(stages) else stage_title(stage.name),
            stage_fraction(stage) * 100,
            _seconds(stage.started_at, stage.ended_at or until),
            stage_eta(stage, now) if has_pace else None,
        )
        for stage in stages
    ]


def _seconds(start: datetime | None, end: datetime | None) -> float | None:
    return None if start is None or end is None else (end - start).total_seconds()


def _with_attempt() -> QuerySet[Stage]:
    """Stages with the start of the newest attempt and the step from which it went on."""
    newest = Attempt.objects.filter(experiment=OuterRef("experiment")).order_by("-number")
    return Stage.objects.annotate(
        attempt_at=Subquery(newest.values("started_at")[:1]),
        resumed_step=Subquery(newest.values("resumed_step")[:1]),
    )


def stage_eta(stage: Any, now: datetime) -> float | None:
    """Time left at the pace of this attempt; None before it has done anything. What an earlier attempt did,
    and the time between them, says nothing of the pace."""
    if stage.status != StageStatus.RUNNING or stage.started_at is None or not stage.total:
        return None
    since = max(stage.started_at, stage.attempt_at or stage.started_at)
    is_resumed = since > stage.started_at and stage.name in (StageName.SFT, StageName.GRPO)
    done = stage.done - (stage.resumed_step or 0 if is_resumed else 0)
    if done <= 0:
        return None
    return max(0.0, (now - since).total_seconds() / done * (stage.total - stage.done))


def experiment_eta(experiment: Experiment, views: list[StageView]) -> float | None:
    """Time left of the whole run while it is active: of the running stage, and of all that are to come.

    None while nothing tells how quick this machine is: the formula alone named 30 s for a run of 200.
    """
    if experiment.status not in ACTIVE_STATUSES:
        return None
    expected = expected_stages(experiment, views)
    times = [_left(view, expected.get(view.stage.name)) for view in views]
    known = [seconds for seconds in times if seconds is not None]
    return sum(known) if known and len(known) == len(times) else None


def _left(view: StageView, expected: float | None) -> float | None:
    if view.stage.status == StageStatus.FINISHED:
        return 0.0
    if view.eta is not None:
        return view.eta
    return None if expected is None else expected * (1 - view.percent / 100)


def expected_stages(experiment: Experiment, views: list[StageView]) -> dict[str, float]:
    """Stage -> seconds, where something is known: an evaluation takes as long as the first one took; all else
    is as much slower than the formula of the pre-flight as this run's GRPO is, as earlier runs of the preset
    were, or as this run's first evaluation was."""
    took = {view.stage.name: view.seconds for view in views if view.stage.status == StageStatus.FINISHED}
    formula = stage_seconds(experiment.settings)
    pace = (
        _pace_of_grpo(views, formula.get(StageName.GRPO, 0.0))
        or _pace_of_preset(experiment)
        or _pace_of_evaluation(experiment, took)
    )
    expected = {str(name): seconds * pace for name, seconds in formula.items()} if pace else {}
    before = took.get(StageName.EVALUATION_BEFORE)
    return expected | ({StageName.EVALUATION_AFTER: before} if before else {})


def _pace_of_grpo(views: list[StageView], formula: float) -> float | None:
    """Of this run, once it has made a step."""
    for view in views:
        if view.stage.name == StageName.GRPO and view.eta is not None and view.percent < 100:
            return view.eta / (1 - view.percent / 100) / formula if formula else None
    return None


def _pace_of_evaluation(experiment: Experiment, took: Mapping[str, float | None]) -> float | None:
    """How much slower than the formula the first evaluation was. Its policy is the untrained one, of which
    the formula counts that it runs into its limits."""
    before = took.get(StageName.EVALUATION_BEFORE)
    formula = stage_seconds(experiment.settings, turns_used=1.0).get(StageName.EVALUATION_BEFORE)
    return before / formula if before and formula else None


def _pace_of_preset(experiment: Experiment) -> float | None:
    """How much slower than the formula GRPO was in the newest finished experiments of the preset."""
    if not experiment.preset:
        return None
    rows = Stage.objects.filter(
        name=StageName.GRPO,
        started_at__isnull=False,
        ended_at__isnull=False,
        experiment__team=experiment.team_id,
        experiment__preset=experiment.preset,
        experiment__status=ExperimentStatus.FINISHED,
    )
    paces = [
        seconds / formula
        for row in rows.select_related("experiment").order_by("-id")[:NUM_REMEMBERED]
        if (seconds := _seconds(row.started_at, row.ended_at))
        and (formula := stage_seconds(row.experiment.settings)[StageName.GRPO])
    ]
    return median(paces) if paces else None
