"""Writes of the trainer, through the gpu worker: stages, metrics, evaluations, checkpoints."""

import math
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from training.contracts.trainer_reports import CheckpointReport, EvaluationResult
from webapp.experiments.evaluations.success_pairs import p_of_change
from webapp.experiments.lifecycle.status_changes import stream_of
from webapp.experiments.models import (
    Attempt,
    CheckpointRecord,
    Evaluation,
    EvaluationTasks,
    Experiment,
    GpuSample,
    MetricPoint,
    Stage,
    StageStatus,
)
from webapp.live.event_publishing import publish

GPU_SAMPLES_KEPT = timedelta(days=14)
"""One every ten seconds makes 8640 a day."""


@transaction.atomic
def start_stage(*, experiment_id: int, name: str, total: int, unit: str) -> None:
    """A stage begins (or begins again after a restart)."""
    values = {"status": StageStatus.RUNNING, "total": total, "unit": unit, "done": 0}
    stage, created = Stage.objects.get_or_create(
        experiment_id=experiment_id,
        name=name,
        defaults={**values, "position": 50, "started_at": timezone.now()},
    )
    if not created:
        Stage.objects.filter(pk=stage.pk).update(**values)
        Stage.objects.filter(pk=stage.pk, started_at=None).update(started_at=timezone.now())
    Experiment.objects.filter(pk=experiment_id).update(stage=name)
    publish(stream_of(experiment_id), "stage.started", {"stage": name, "total": total, "unit": unit})


@transaction.atomic
def finish_stage(*, experiment_id: int, name: str) -> None:
    """A stage ended."""
    Stage.objects.filter(experiment_id=experiment_id, name=name).update(
        status=StageStatus.FINISHED, ended_at=timezone.now(), done=F("total")
    )
    publish(stream_of(experiment_id), "stage.finished", {"stage": name})


@transaction.atomic
def report_progress(*, experiment_id: int, stage: str, done: int, total: int) -> None:
    """How far the running stage is."""
    Stage.objects.filter(experiment_id=experiment_id, name=stage).update(done=done, total=total)
    publish(stream_of(experiment_id), "stage.progressed", {"stage": stage, "done": done, "total": total})


@transaction.atomic
def record_metrics(
    *, experiment_id: int, attempt: int, step: int, values: dict[str, float], policy_version: int
) -> None:
    """Store one step's values; a resumed attempt overwrites the steps that it repeats."""
    MetricPoint.objects.bulk_create(
        [
            MetricPoint(
                experiment_id=experiment_id, name=name, step=step, value=_storable(value), attempt=attempt
            )
            for name, value in values.items()
        ],
        update_conflicts=True,
        unique_fields=["experiment", "name", "step"],
        update_fields=["value", "attempt"],
    )
    Experiment.objects.filter(pk=experiment_id).update(step=step, policy_version=policy_version)
    publish(stream_of(experiment_id), "metrics.added", {"step": step, "policy_version": policy_version})


def _storable(value: float) -> float:
    """SQLite has no NaN: it is stored as the infinity that is shown as a gap, too."""
    return math.inf if math.isnan(value) else value


@transaction.atomic
def record_evaluation(*, experiment_id: int, result: EvaluationResult) -> None:
    """Store an evaluation; the same one after a restart replaces the old."""
    experiment = Experiment.objects.select_related("evaluates").defer("config").get(pk=experiment_id)
    key = {"name", "step", "temperature"}
    evaluation, _ = Evaluation.objects.update_or_create(
        experiment_id=experiment_id,
        **result.model_dump(include=key),
        defaults=result.model_dump(exclude=key | {"by_task"}) | {"checkpoint": experiment.evaluates},
    )
    EvaluationTasks.objects.update_or_create(evaluation=evaluation, defaults={"results": result.by_task})
    first = Evaluation.objects.filter(
        experiment_id=experiment_id, name="before", temperature=result.temperature
    ).first()
    if first and first.pk != evaluation.pk:
        evaluation.p_of_change = p_of_change(first, evaluation)
        evaluation.save(update_fields=["p_of_change"])
    payload = result.model_dump(include=key | {"success", "solved", "num_tasks"})
    publish(stream_of(experiment_id), "evaluation.added", payload)
    if experiment.evaluates:
        publish(stream_of(experiment.evaluates.experiment_id), "evaluation.added", payload)


@transaction.atomic
def record_checkpoint(*, experiment_id: int, report: CheckpointReport) -> None:
    """A checkpoint is complete on disk."""
    values = report.model_dump(exclude={"path", "bytes"}) | {"size_bytes": report.bytes}
    if report.is_best:
        CheckpointRecord.objects.filter(experiment_id=experiment_id).update(is_best=False)
    CheckpointRecord.objects.update_or_create(
        experiment_id=experiment_id,
        path=report.path,
        defaults={**values, "deleted_at": None, "copied_at": None},
    )
    publish(stream_of(experiment_id), "checkpoint.saved", {"step": report.step, "path": report.path[-120:]})


@transaction.atomic
def record_resume(*, experiment_id: int, attempt: int, report: CheckpointReport) -> None:
    """An attempt goes on from a checkpoint; its trainer may have died before it could report that one."""
    known = CheckpointRecord.objects.filter(experiment_id=experiment_id, path=report.path, deleted_at=None)
    if not known.exists():
        record_checkpoint(experiment_id=experiment_id, report=report)
    same = Attempt.objects.filter(experiment_id=experiment_id, number=attempt)
    same.update(resumed_step=report.step)


@transaction.atomic
def record_checkpoint_deleted(*, experiment_id: int, path: str) -> None:
    """An old checkpoint was removed from disk."""
    CheckpointRecord.objects.filter(experiment_id=experiment_id, path=path).update(deleted_at=timezone.now())
    publish(stream_of(experiment_id), "checkpoint.deleted", {"path": path[-120:]})


@dataclass(frozen=True, slots=True)
class GpuLook:
    """How busy a host's GPUs are, as `GpuSample` keeps it."""

    gpus: list[dict[str, Any]]
    processes: list[dict[str, Any]]


def record_gpu_sample(*, experiment_id: int, attempt: int, look: GpuLook) -> None:
    """Store one look at the GPUs; pages ask for them by themselves."""
    GpuSample.objects.create(
        experiment_id=experiment_id,
        attempt=attempt,
        at=timezone.now(),
        gpus=look.gpus,
        processes=look.processes,
    )


def prune_gpu_samples() -> int:
    """Forget old looks; returns how many."""
    return GpuSample.objects.filter(at__lt=timezone.now() - GPU_SAMPLES_KEPT).delete()[0]
