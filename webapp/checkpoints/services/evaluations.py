"""Evaluations of a single checkpoint that people ask for."""

from dataclasses import asdict, dataclass
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet

from training.contracts.config import ConfigError, ExperimentConfig, parse_config
from webapp.experiments.models import FINAL_STATUSES, CheckpointRecord, Experiment
from webapp.experiments.queries.checkpoints import CheckpointRefused, model_path, require_kept
from webapp.experiments.queries.streams import experiment_stream
from webapp.experiments.services.experiments import queue_experiment
from webapp.live.event_publishing import publish

MAX_TASKS = 5000
MAX_SAMPLES = 64
MAX_TEMPERATURE = 2.0


def unfinished_evaluations(checkpoint: CheckpointRecord) -> QuerySet[Experiment]:
    """Evaluations on demand that wait or run."""
    return checkpoint.evaluated_by.exclude(status__in=FINAL_STATUSES).order_by("id")


@dataclass(frozen=True, slots=True, kw_only=True)
class HowToEvaluate:
    """What a person chooses; the names are those of EvaluationConfig."""

    num_tasks: int
    samples_per_task: int = 1
    """Of the sampled pass; the greedy one has one."""
    temperature: float | None = None
    """Of the sampled pass; None = of the experiment's training, 0 = no sampled pass."""
    greedy: bool = True

    def check(self) -> None:
        """Raises CheckpointRefused."""
        if not 1 <= self.num_tasks <= MAX_TASKS:
            raise CheckpointRefused(f"must be from 1 to {MAX_TASKS}", "num_tasks")
        if not 1 <= self.samples_per_task <= MAX_SAMPLES:
            raise CheckpointRefused(f"must be from 1 to {MAX_SAMPLES}", "samples_per_task")
        if self.temperature is not None and not 0 <= self.temperature <= MAX_TEMPERATURE:
            raise CheckpointRefused(f"must be from 0 (greedy) to {MAX_TEMPERATURE:g}", "temperature")


def evaluation_config(checkpoint: CheckpointRecord, how: HowToEvaluate) -> ExperimentConfig:
    """The checkpoint's experiment turned into an evaluation: same prompt, parser, tasks and desktops.

    Raises ConfigError when any of its settings is not known: defaults would measure something else.
    """
    experiment = checkpoint.experiment
    if experiment.config_problems:
        raise ConfigError(experiment.config_problems)
    values = experiment.settings.model_dump(mode="json")
    per_host = experiment.settings.optimiser.processes_per_host
    changes: dict[str, dict[str, Any]] = {
        "model": {"path": model_path(checkpoint)},
        "evaluation": {"only": True, **asdict(how)},
        "sft": {"enabled": False},
        "replay": {"enabled": False},
        "algorithm": {"kl_coefficient": 0.0, "reference_path": ""},
        "lora": {"rank": 0},
        "optimiser": {"num_hosts": 1, "least_hosts": 0, "num_processes": per_host},
    }
    for section, changed in changes.items():
        values[section] |= changed
    return parse_config(values)


@transaction.atomic
def request_evaluation(*, checkpoint: CheckpointRecord, user: User | None, how: HowToEvaluate) -> Experiment:
    """Queue an evaluation of a checkpoint; the same one twice is one. Raises CheckpointRefused, ConfigError.

    It is an experiment of its own, so it runs on any free gpu worker, also while its source trains.
    """
    how.check()
    require_kept(checkpoint)
    config = evaluation_config(checkpoint, how)
    for known in unfinished_evaluations(checkpoint):
        if known.settings.evaluation == config.evaluation:
            return known
    source = checkpoint.experiment
    publish(
        experiment_stream(source.pk),
        "checkpoint.evaluated",
        {"checkpoint": checkpoint.pk, "status": "queued"},
    )
    experiment = queue_experiment(
        team=source.team,
        owner=user,
        name=_name(checkpoint, user),
        config=config,
        preset=source.preset,
        priority=source.priority,
        note=_note(config),
        origin=source,
    )
    Experiment.objects.filter(pk=experiment.pk).update(evaluates=checkpoint)
    experiment.evaluates = checkpoint
    return experiment


def _name(checkpoint: CheckpointRecord, user: User | None) -> str:
    """Which one it is, and whose: "Evaluate #1 step 52, no. 2 by ana"."""
    number = checkpoint.evaluated_by.count() + 1
    words = f"Evaluate #{checkpoint.experiment_id} step {checkpoint.step}"
    again = f", no. {number}" if number > 1 else ""
    return f"{words}{again}" + (f" by {user.get_username()}" if user else "")


def _note(config: ExperimentConfig) -> str:
    passes = [
        f"{one.samples_per_task} × sampled at {one.temperature:g}" if one.temperature else "greedy"
        for one in config.evaluation_passes
    ]
    return f"{config.evaluation.num_tasks} held-out tasks, {' and '.join(passes)}."
