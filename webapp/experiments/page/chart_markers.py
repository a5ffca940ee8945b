"""What happened at which step of an experiment, for the foot of its charts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.db.models import Count

from webapp.experiments.checkpoints.usable_checkpoints import with_stage
from webapp.experiments.models import Evaluation, Experiment
from webapp.experiments.page.metric_series import Series
from webapp.experiments.templatetags.deskhand import percent

Marker = dict[str, Any]
"""kind, stage ("sft" or "grpo", whose steps it counts), step, text."""


ROLLED_BACK = "checkpoint/rolled_back"
"""Series with a point at every step after which the weights were rolled back."""


def markers_of(
    experiment: Experiment, evaluations: list[Evaluation], series: Series, from_step: int = 0
) -> list[Marker]:
    """Checkpoints, evaluations, replay injections, resumed attempts and roll-backs from a step on.

    `series` are those from that step on, as the charts show them.
    """
    found = [
        *_checkpoints(experiment, from_step),
        *_evaluations(evaluations),
        *_injections(experiment, from_step),
        *_resumed(experiment),
        *_rolled_back(experiment, series),
    ]
    return [marker for marker in found if marker["step"] >= from_step]


def _marker(kind: str, step: int, text: str, stage: str = "grpo") -> Marker:
    return {"kind": kind, "stage": stage, "step": step, "text": text}


def _checkpoints(experiment: Experiment, from_step: int) -> Iterator[Marker]:
    rows = with_stage(experiment.checkpoints.filter(step__gte=from_step))
    columns: tuple[Any, ...] = ("step", "is_best", "deleted_at", "is_of_sft")
    for step, is_best, deleted_at, is_of_sft in rows.values_list(*columns):
        words = " (best)" if is_best else " (deleted)" if deleted_at else ""
        yield _marker("checkpoint", step, f"Checkpoint{words}", "sft" if is_of_sft else "grpo")


def _evaluations(evaluations: list[Evaluation]) -> Iterator[Marker]:
    for one in evaluations:
        step = one.checkpoint.step if one.checkpoint else one.step
        yield _marker("evaluation", step, f"Evaluation, {one.kind}: {percent(one.success)}")


def _injections(experiment: Experiment, from_step: int) -> Iterator[Marker]:
    uses = experiment.replay_uses.filter(step__gte=from_step)  # type: ignore[attr-defined]
    for step, number in uses.order_by("step").values_list("step").annotate(number=Count("id")):
        yield _marker("injection", step, f"{number} replay {'entry' if number == 1 else 'entries'} injected")


def _resumed(experiment: Experiment) -> Iterator[Marker]:
    for one in experiment.attempts.exclude(resumed_step=None).defer("policy_token", "gang_secret"):
        yield _marker("resume", one.resumed_step or 0, f"Attempt {one.number} resumed here")


def _rolled_back(experiment: Experiment, series: Series) -> Iterator[Marker]:
    scale = experiment.settings.checkpoints.roll_back_rate
    for step in series.get(ROLLED_BACK, {"x": []})["x"]:
        yield _marker("rollback", int(step), f"Rolled back; learning rate x {scale:g}")
