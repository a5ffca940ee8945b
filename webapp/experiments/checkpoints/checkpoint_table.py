"""What the checkpoints tab shows: every checkpoint with how it did, who evaluates it now, and its exports."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any, Literal

from django.db.models import Q

from training.contracts.config import ExperimentConfig
from webapp.experiments.models import (
    CheckpointExport,
    CheckpointRecord,
    Evaluation,
    Experiment,
    ExperimentStatus,
    ExportStatus,
)
from webapp.fleet.models import Worker, WorkerStatus


@dataclass(slots=True, kw_only=True)
class CheckpointRow:
    """One line of the table."""

    checkpoint: CheckpointRecord
    results: list[Evaluation] = field(default_factory=list)
    """Of its weights: by the experiment itself and on demand, oldest first."""
    runs: list[Experiment] = field(default_factory=list)
    """Evaluations on demand that have no result yet: waiting, running, failed."""


def all_evaluations(experiment: Experiment) -> list[Evaluation]:
    """Its own, and those that people asked of its checkpoints."""
    rows = Evaluation.objects.filter(Q(experiment=experiment) | Q(checkpoint__experiment=experiment))
    return list(rows.select_related("checkpoint").order_by("id"))


def is_on_demand(evaluation: Evaluation, experiment: Experiment) -> bool:
    """True when another experiment measured it."""
    return evaluation.experiment_id != experiment.pk


def checkpoint_rows(experiment: Experiment) -> list[CheckpointRow]:
    """Newest first; four queries."""
    rows = [
        CheckpointRow(checkpoint=found) for found in experiment.checkpoints.order_by("-step", "-id").all()
    ]
    own: dict[int, list[Evaluation]] = defaultdict(list)
    demanded: dict[int, list[Evaluation]] = defaultdict(list)
    for evaluation in all_evaluations(experiment):
        if is_on_demand(evaluation, experiment):
            demanded[evaluation.checkpoint_id or 0].append(evaluation)
        else:
            own[evaluation.policy_version].append(evaluation)
    runs: dict[int, list[Experiment]] = defaultdict(list)
    unfinished = Experiment.objects.filter(evaluates__experiment=experiment).exclude(
        status__in=[ExperimentStatus.FINISHED, ExperimentStatus.CANCELLED]
    )
    for run in unfinished.defer("config").order_by("id"):
        runs[run.evaluates_id or 0].append(run)
    for row in rows:
        row.results = own[row.checkpoint.policy_version] + demanded[row.checkpoint.pk]
        row.runs = runs[row.checkpoint.pk]
    return rows


def checkpoints_context(experiment: Experiment) -> dict[str, Any]:
    """What templates/experiments/parts/checkpoints.html shows."""
    exports = CheckpointExport.objects.filter(checkpoint__experiment=experiment)
    settings = experiment.settings
    return {
        "rows": checkpoint_rows(experiment),
        "exports": list(exports.exclude(status=ExportStatus.REMOVED).select_related("checkpoint")),
        "has_gpu_worker": Worker.objects.filter(queue="gpu", status=WorkerStatus.ONLINE).exists(),
        "num_tasks": settings.evaluation.num_tasks or ExperimentConfig().evaluation.num_tasks,
        "temperature": settings.evaluation_passes[0].temperature or settings.sampling.temperature,
        "samples_per_task": settings.evaluation.samples_per_task,
        "sampling": _sampling(settings),
    }


def _sampling(settings: ExperimentConfig) -> Literal["both", "greedy", "sampled"]:
    """How its own evaluations sample."""
    first, last = settings.evaluation_passes[0], settings.evaluation_passes[-1]
    if first.temperature == 0:
        return "greedy"
    return "both" if last.temperature == 0 else "sampled"
