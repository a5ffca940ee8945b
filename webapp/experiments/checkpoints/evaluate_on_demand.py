"""Evaluations of a single checkpoint that people ask for."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet

from training.contracts.config import ConfigError, ExperimentConfig, parse_config
from webapp.experiments.checkpoints.usable_checkpoints import CheckpointRefused, model_path, require_kept
from webapp.experiments.lifecycle.operator_actions import queue_experiment
from webapp.experiments.lifecycle.status_changes import stream_of
from webapp.experiments.models import FINAL_STATUSES, CheckpointRecord, Experiment
from webapp.live.event_publishing import publish

MAX_TASKS = 5000
MAX_TEMPERATURE = 2.0


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
    return checkpoint.evaluated_by.exclude(status__in=FINAL_STATUSES).order_by("id")
