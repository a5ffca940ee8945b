"""What happened at which step of an experiment, for the foot of its charts."""

from collections.abc import Iterator
from typing import Any

from django.db.models import Case, Count, F, QuerySet, Value, When

from webapp.analysis.series.metric_series import ROLLED_BACK, Series
from webapp.experiments.models import Evaluation, Experiment
from webapp.experiments.queries.checkpoints import made_in_sft
from webapp.ui.templatetags.deskhand import percent

Marker = dict[str, Any]
"""kind, stage ("sft" or "grpo", whose steps it counts), step, text."""


def markers_of(
    experiment: Experiment, evaluations: list[Evaluation], series: Series, from_step: int = 0
) -> list[Marker]:
    """Checkpoints, evaluations, replay injections, resumed attempts and roll-backs from a step on.

    `series` are those from that step on, as the charts show them.
    """
    found = [
        *_stored(experiment, from_step),
        *_evaluations(evaluations),
        *_rolled_back(experiment, series),
    ]
    return [marker for marker in found if marker["step"] >= from_step]


def _marker(kind: str, step: int, text: str, stage: str = "grpo") -> Marker:
    return {"kind": kind, "stage": stage, "step": step, "text": text}


def _stored(experiment: Experiment, from_step: int) -> Iterator[Marker]:
    """Of checkpoints, injections and resumed attempts, which one query finds."""
    checkpoints, injections, resumed = (
        rows.order_by()
        .annotate(kind=Value(kind))
        .values_list("kind", "of_step", "number", "state", "is_of_sft")
        for kind, rows in (
            ("checkpoint", _checkpoints(experiment, from_step)),
            ("injection", _injections(experiment, from_step)),
            ("resume", _resumed(experiment)),
        )
    )
    for kind, step, number, state, is_of_sft in checkpoints.union(injections, resumed, all=True):
        text = {
            "checkpoint": f"Checkpoint{state}",
            "injection": f"{number} replay {'entry' if number == 1 else 'entries'} injected",
            "resume": f"Attempt {number} resumed here",
        }[kind]
        yield _marker(kind, step, text, "sft" if is_of_sft else "grpo")


def _checkpoints(experiment: Experiment, from_step: int) -> QuerySet[Any]:
    state = Case(
        When(is_best=True, then=Value(" (best)")),
        When(deleted_at__isnull=False, then=Value(" (deleted)")),
        default=Value(""),
    )
    rows = experiment.checkpoints.filter(step__gte=from_step)
    return rows.annotate(of_step=F("step"), number=Value(0), state=state, is_of_sft=made_in_sft())


def _injections(experiment: Experiment, from_step: int) -> QuerySet[Any]:
    rows = experiment.replay_uses.filter(step__gte=from_step)  # type: ignore[attr-defined]
    number, without_state = Count("id"), {"state": Value(""), "is_of_sft": Value(False)}
    return rows.values(of_step=F("step")).annotate(number=number, **without_state)


def _resumed(experiment: Experiment) -> QuerySet[Any]:
    rows = experiment.attempts.exclude(resumed_step=None)
    return rows.annotate(of_step=F("resumed_step"), state=Value(""), is_of_sft=Value(False))


def _evaluations(evaluations: list[Evaluation]) -> Iterator[Marker]:
    for one in evaluations:
        step = one.checkpoint.step if one.checkpoint else one.step
        stage = "sft" if one.is_of_sft else "grpo"
        yield _marker("evaluation", step, f"Evaluation, {one.kind}: {percent(one.shown.value)}", stage)


def _rolled_back(experiment: Experiment, series: Series) -> Iterator[Marker]:
    scale = experiment.settings.checkpoints.roll_back_rate
    for step in series.get(ROLLED_BACK, {"x": []})["x"]:
        yield _marker("rollback", int(step), f"Rolled back; learning rate x {scale:g}")
