"""What the checkpoints tab shows: every checkpoint with how it did, who evaluates it now, and its exports."""

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any, Literal

from django.db.models import Exists, Q

from training.contracts.config import ExperimentConfig
from webapp.experiments.models import (
    CheckpointExport,
    CheckpointRecord,
    Evaluation,
    Experiment,
    ExperimentStatus,
    ExportStatus,
)
from webapp.experiments.queries.evaluations import is_on_demand
from webapp.fleet.models import Worker, WorkerStatus

ROWS_PER_PAGE = 40


@dataclass(slots=True, kw_only=True)
class CheckpointRow:
    """One line of the table."""

    checkpoint: CheckpointRecord
    results: list[Evaluation] = field(default_factory=list)
    """Of its weights: by the experiment itself and on demand, oldest first."""
    runs: list[Experiment] = field(default_factory=list)
    """Evaluations on demand that have no result yet: waiting, running, failed."""
    equal_steps: list[int] = field(default_factory=list)
    """Steps of the others of them with the same weights: no update came between them."""


def checkpoint_rows(experiment: Experiment, first: int = 0, number: int | None = None) -> list[CheckpointRow]:
    """The best one, then the newest first; `number` of them from place `first` on. Three queries."""
    online = Worker.objects.filter(queue="gpu", status=WorkerStatus.ONLINE)
    ordered = experiment.checkpoints.order_by("-is_best", "-step", "-id").annotate(can_ask=Exists(online))
    found = ordered[first:] if number is None else ordered[first : first + number]
    rows = [CheckpointRow(checkpoint=one) for one in found]
    versions = [row.checkpoint.policy_version for row in rows]
    ids = [row.checkpoint.pk for row in rows]
    own: dict[int, list[Evaluation]] = defaultdict(list)
    demanded: dict[int, list[Evaluation]] = defaultdict(list)
    of_these = Q(experiment=experiment, policy_version__in=versions) | Q(checkpoint__in=ids)
    for evaluation in Evaluation.objects.filter(of_these).order_by("id"):
        if is_on_demand(evaluation, experiment):
            demanded[evaluation.checkpoint_id or 0].append(evaluation)
        else:
            own[evaluation.policy_version].append(evaluation)
    runs: dict[int, list[Experiment]] = defaultdict(list)
    unfinished = Experiment.objects.filter(evaluates__in=ids).exclude(
        status__in=[ExperimentStatus.FINISHED, ExperimentStatus.CANCELLED]
    )
    for run in unfinished.defer("config").order_by("id"):
        runs[run.evaluates_id or 0].append(run)
    steps: dict[int, set[int]] = defaultdict(set)
    for row in rows:
        steps[row.checkpoint.policy_version].add(row.checkpoint.step)
    for row in rows:
        row.equal_steps = sorted(steps[row.checkpoint.policy_version] - {row.checkpoint.step})
        row.results = own[row.checkpoint.policy_version] + demanded[row.checkpoint.pk]
        row.runs = runs[row.checkpoint.pk]
    return rows


def checkpoints_context(experiment: Experiment, page: int) -> dict[str, Any]:
    """What templates/experiments/parts/checkpoints.html shows; pages count from 1."""
    exports = CheckpointExport.objects.filter(checkpoint__experiment=experiment)
    settings = experiment.settings
    rows = checkpoint_rows(experiment, (page - 1) * ROWS_PER_PAGE, ROWS_PER_PAGE + 1)
    return {
        "rows": rows[:ROWS_PER_PAGE],
        "newer": page - 1,
        "older": page + 1 if len(rows) > ROWS_PER_PAGE else 0,
        "exports": list(exports.exclude(status=ExportStatus.REMOVED).select_related("checkpoint")),
        "has_gpu_worker": any(row.checkpoint.can_ask for row in rows),  # type: ignore[attr-defined]
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
