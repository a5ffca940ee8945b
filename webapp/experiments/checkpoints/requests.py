"""What people ask of a single checkpoint: evaluate it, go on from it. Exports are in `exports`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet

from training.contracts.config import ConfigError, ExperimentConfig, parse_config
from webapp.experiments.lifecycle.operator_actions import queue_experiment
from webapp.experiments.lifecycle.status_changes import stream_of
from webapp.experiments.models import CheckpointRecord, Experiment, ExperimentStatus
from webapp.live.publish import publish

MODEL_FOLDER = "model"
"""Folder of a checkpoint that holds it in transformers format."""
MAX_TASKS = 5000
MAX_TEMPERATURE = 2.0


class CheckpointRefused(ValueError):
    """Raised when a checkpoint cannot be used as asked; `field` names the input, "" the checkpoint itself."""

    def __init__(self, message: str, field: str = "") -> None:
        super().__init__(message)
        self.field = field


def find_checkpoint(experiment: Experiment, wanted: str) -> CheckpointRecord:
    """The checkpoint that "best", "latest", "step N" or its id means. Raises CheckpointRefused."""
    kept = experiment.checkpoints.filter(deleted_at=None).order_by("-id")
    if wanted in ("best", "latest"):
        found = kept.filter(is_best=True).first() if wanted == "best" else kept.first()
    elif wanted.startswith("step ") and wanted[5:].isdecimal():
        found = kept.filter(step=int(wanted[5:])).first()
    else:
        found = experiment.checkpoints.filter(pk=int(wanted)).first() if wanted.isdecimal() else None
    if found is None:
        steps = ", ".join(str(row.step) for row in kept[:10]) or "none"
        raise CheckpointRefused(
            f"experiment #{experiment.pk} has no checkpoint {wanted!r}; kept are those of steps {steps}. "
            'Say best, latest, "step N" or an id'
        )
    return found


def require_kept(checkpoint: CheckpointRecord) -> None:
    """Raise CheckpointRefused when its folder was deleted."""
    if checkpoint.deleted_at is not None:
        raise CheckpointRefused(
            f"the checkpoint of step {checkpoint.step} was deleted at {checkpoint.deleted_at:%Y-%m-%d %H:%M} "
            "UTC (checkpoints.keep_last and the best one stay); choose one that is kept"
        )
    folder = Path(checkpoint.path)
    # Only where this machine sees the experiment's folder at all: gpu workers may have other disks.
    if folder.parent.is_dir() and not folder.is_dir():
        raise CheckpointRefused(f"{folder} is gone from the disk; choose another checkpoint")


def model_path(checkpoint: CheckpointRecord) -> str:
    """What another experiment names as its `model.path`."""
    return str(Path(checkpoint.path) / MODEL_FOLDER)


def evaluation_config(
    checkpoint: CheckpointRecord, *, num_tasks: int, temperature: float
) -> ExperimentConfig:
    """The checkpoint's experiment turned into an evaluation: same prompt, parser, tasks and desktops.

    Raises ConfigError when any of its settings is not known: defaults would measure something else.
    """
    experiment = checkpoint.experiment
    if experiment.config_problems:
        raise ConfigError(experiment.config_problems)
    values = experiment.settings.model_dump(mode="json")
    changes: dict[str, dict[str, Any]] = {
        "model": {"path": model_path(checkpoint)},
        "evaluation": {"only": True, "num_tasks": num_tasks, "temperature": temperature},
        "sft": {"enabled": False},
        "replay": {"enabled": False},
        "algorithm": {"kl_coefficient": 0.0, "reference_path": ""},
        "lora": {"rank": 0},
    }
    for section, changed in changes.items():
        values[section] |= changed
    return parse_config(values)


@transaction.atomic
def request_evaluation(
    *, checkpoint: CheckpointRecord, user: User | None, num_tasks: int, temperature: float
) -> Experiment:
    """Queue an evaluation of a checkpoint; the same one twice is one. Raises CheckpointRefused, ConfigError.

    It is an experiment of its own, so it runs on any free gpu worker, also while its source trains.
    """
    if not 1 <= num_tasks <= MAX_TASKS:
        raise CheckpointRefused(f"must be from 1 to {MAX_TASKS}", "num_tasks")
    if not 0 <= temperature <= MAX_TEMPERATURE:
        raise CheckpointRefused(f"must be from 0 (greedy) to {MAX_TEMPERATURE:g}", "temperature")
    require_kept(checkpoint)
    config = evaluation_config(checkpoint, num_tasks=num_tasks, temperature=temperature)
    for known in unfinished_evaluations(checkpoint):
        if known.settings.evaluation == config.evaluation:
            return known
    source = checkpoint.experiment
    how = "greedy" if temperature == 0 else f"sampled at {temperature:g}"
    publish(stream_of(source.pk), "checkpoint.evaluated", {"checkpoint": checkpoint.pk, "status": "queued"})
    experiment = queue_experiment(
        team=source.team,
        owner=user,
        name=f"Evaluate #{source.pk} step {checkpoint.step}",
        config=config,
        preset=source.preset,
        priority=source.priority,
        note=f"{num_tasks} held-out tasks, {how}.",
        cloned_from=source,
    )
    Experiment.objects.filter(pk=experiment.pk).update(evaluates=checkpoint)
    experiment.evaluates = checkpoint
    return experiment


def unfinished_evaluations(checkpoint: CheckpointRecord) -> QuerySet[Experiment]:
    """Evaluations on demand that wait or run."""
    final = [status for status in ExperimentStatus if status.is_final()]
    return checkpoint.evaluated_by.exclude(status__in=final).order_by("id")


def config_to_continue(checkpoint: CheckpointRecord) -> ExperimentConfig:
    """The config of an experiment that goes on from a checkpoint with fresh optimiser and steps."""
    settings = checkpoint.experiment.settings
    changes = {
        "model": settings.model.model_copy(update={"path": model_path(checkpoint)}),
        "sft": settings.sft.model_copy(update={"enabled": False}),
        "evaluation": settings.evaluation.model_copy(update={"only": False}),
    }
    return settings.model_copy(update=changes)


def paths_in_use(experiment_id: int) -> list[str]:
    """Folders of this experiment's checkpoints that must not be pruned now: somebody waits for them."""
    final = [status for status in ExperimentStatus if status.is_final()]
    kept = CheckpointRecord.objects.filter(experiment_id=experiment_id, deleted_at=None)
    waited_for = kept.filter(evaluated_by__in=Experiment.objects.exclude(status__in=final))
    exported = kept.filter(exports__status__in=["queued", "running"])
    found = set(waited_for.values_list("path", flat=True)) | set(exported.values_list("path", flat=True))
    waiting = Experiment.objects.filter(status__in=[ExperimentStatus.QUEUED, ExperimentStatus.STARTING])
    started_from = set(waiting.values_list("config__model__path", flat=True))
    found |= {row.path for row in kept if model_path(row) in started_from or row.path in started_from}
    return sorted(found)
