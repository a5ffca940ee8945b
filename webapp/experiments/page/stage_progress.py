"""How far the stages of an experiment are, and how long they still take."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.utils import timezone

from training.contracts.stage_names import ONLY_EVALUATION, StageName
from webapp.experiments.models import (
    ACTIVE_STATUSES,
    Experiment,
    Stage,
    StageStatus,
)
from webapp.experiments.templatetags.deskhand import stage_title


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
    now, stages = timezone.now(), list(experiment.stages.all())
    until = now if experiment.status in ACTIVE_STATUSES else experiment.ended_at  # a failed one is over
    return [
        StageView(
            stage,
            "Held-out evaluation" if is_evaluation(stages) else stage_title(stage.name),
            stage_fraction(stage) * 100,
            _seconds(stage.started_at, stage.ended_at or until),
            stage_eta(stage, now) if experiment.status in ACTIVE_STATUSES else None,
        )
        for stage in stages
    ]


def _seconds(start: datetime | None, end: datetime | None) -> float | None:
    return None if start is None or end is None else (end - start).total_seconds()


def stage_eta(stage: Stage, now: datetime) -> float | None:
    """Time left at the pace so far."""
    if stage.status != StageStatus.RUNNING or stage.started_at is None or not stage.done or not stage.total:
        return None
    pace = (now - stage.started_at).total_seconds() / stage.done
    return max(0.0, pace * (stage.total - stage.done))


def experiment_eta(views: list[StageView]) -> float | None:
    """Time left of the running stage and of the evaluations to come, which take as long as the first."""
    running = next((view.eta for view in views if view.eta is not None), None)
    if running is None:
        return None
    took = {view.stage.name: view.seconds for view in views if view.stage.status == StageStatus.FINISHED}
    known = took.get(StageName.EVALUATION_BEFORE) or 0.0
    pending = [view for view in views if view.stage.status == StageStatus.PENDING]
    return running + sum(known for view in pending if view.stage.name.startswith("evaluation"))
