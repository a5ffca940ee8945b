"""Checks of a valid config before it is queued: will it run here, when, for how long, on what?

One function per question, each yielding `Check`s; a failed one stops the launch, a warning does not.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from django.conf import settings
from django.db.models import Count, F, Q
from django.template.defaultfilters import pluralize

from training.contracts.config import ConfigError, ExperimentConfig, parse_config
from training.contracts.config.providers.osworld import OsworldConfig
from training.planning.model_layouts import published_shape
from webapp.accounts.models import Team
from webapp.experiments.launch.model_folders import TINY_RANDOM, TINY_SHAPE, model_folder, model_shape
from webapp.experiments.launch.preflight.check import Check
from webapp.experiments.launch.preflight.hosts import host_checks
from webapp.experiments.launch.preflight.memory import memory_checks
from webapp.experiments.launch.preflight.osworld import osworld_warnings
from webapp.experiments.launch.preflight.token_budgets import budget_checks
from webapp.experiments.models import Experiment, ExperimentStatus, TaskRecord, TaskSet
from webapp.fleet.models import Worker, WorkerStatus
from webapp.fleet.worker_reports import count_env_slots

GOOD_GROUP_SIZE = 4
"""With 2 or 3 members most groups of a weak or strong policy have equal rewards, thus no advantage."""
TURNS_USED = 0.45
"""Part of the turn limit that a trajectory takes; this and the seconds: first-desk on two cores."""
SECONDS_PER_TURN = 0.35
SECONDS_PER_RESET = 0.1
SECONDS_PER_TRAINED_TRAJECTORY = 0.035
SECONDS_PER_SFT_STEP = 0.55
NUM_REMEMBERED = 5
"""Finished experiments of the same preset whose median duration is used."""


@dataclass(frozen=True, slots=True)
class Preflight:
    """The whole panel."""

    checks: tuple[Check, ...]
    queue_position: int
    """1 = next."""
    num_active: int
    seconds: float
    seconds_basis: str
    """Where the duration comes from, in words."""

    @property
    def may_launch(self) -> bool:
        return not any(check.level == "bad" for check in self.checks)


def run_preflight(config: ExperimentConfig, *, team: Team, preset: str = "", priority: int = 0) -> Preflight:
    """All checks, the place in the queue and the expected duration."""
    checks = [check for question in QUESTIONS for check in question(config, team)]
    order = {"bad": 0, "warning": 1, "good": 2, "info": 3}
    seconds, basis = expected_duration(config, team=team, preset=preset)
    ahead = Experiment.objects.filter(status=ExperimentStatus.QUEUED, priority__gte=priority).count()
    active = [status for status in ExperimentStatus if status.is_active()]
    return Preflight(
        checks=tuple(sorted(checks, key=lambda check: order[check.level])),
        queue_position=ahead + 1,
        num_active=Experiment.objects.filter(status__in=active).count(),
        seconds=seconds,
        seconds_basis=basis,
    )


def group_size(config: ExperimentConfig, team: Team) -> Iterator[Check]:
    value = config.algorithm.group_size
    if value < GOOD_GROUP_SIZE:
        text = "Small groups often have equal rewards and then teach nothing; 4 or more is better."
        yield Check("warning", f"Group size {value}", text, "algorithm.group_size")
    else:
        yield Check("good", f"Group size {value}")


def batch_division(config: ExperimentConfig, team: Team) -> Iterator[Check]:
    samples = config.algorithm.group_size * config.algorithm.groups_per_step
    share = samples // config.optimiser.num_processes
    micro = config.optimiser.microbatch_size
    words = f"{samples} trajectories a step"
    if config.optimiser.packing:
        yield Check("good", words, f"Packed: at most {config.optimiser.microbatch_tokens} tokens at a time.")
        return
    if share > micro and share % micro:
        text = f"{share} per process are not a multiple of the microbatch {micro}: the last one is smaller."
        yield Check("warning", words, text, "optimiser.microbatch_size")
    else:
        yield Check("good", words, f"{-(-share // micro)} microbatch(es) on each process.")


def model(config: ExperimentConfig, team: Team) -> Iterator[Check]:
    if config.model.path == TINY_RANDOM:
        yield Check("good", "A random tiny model is made at the start", "From optimiser.seed.")
        yield from memory_checks(config, TINY_SHAPE)
        return
    folder = model_folder(config.model.path)
    if folder is None:
        text = (
            f"No checkpoint folder with a config.json named {config.model.path!r}: not a shipped one, not a "
            f"path, not below {settings.DATA_DIR}. Put the downloaded folder there, or write its path."
        )
        yield Check("bad", "Model not found", text, "model.path")
        if (shape := published_shape(config.model.path)) is not None:
            yield from memory_checks(config, shape)
        return
    try:
        shape = model_shape(folder)
    except (ValueError, KeyError, OSError) as error:
        yield Check("bad", "Model cannot be read", str(error), "model.path")
        return
    yield Check("good", f"Model of {shape.num_parameters / 1e6:,.1f} M parameters", folder.name)
    yield from memory_checks(config, shape)


def reference(config: ExperimentConfig, team: Team) -> Iterator[Check]:
    if config.algorithm.kl_coefficient <= 0:
        return
    if model_folder(config.algorithm.reference_path) is None:
        text = f"No checkpoint folder named {config.algorithm.reference_path!r}."
        yield Check("bad", "KL reference not found", text, "algorithm.reference_path")
    else:
        yield Check("good", "KL reference found")


def checkpoint_folder(config: ExperimentConfig, team: Team) -> Iterator[Check]:
    chosen = config.checkpoints.directory
    folder = Path(chosen).expanduser() if chosen else Path(settings.DATA_DIR) / "experiments"
    existing = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
        text = f"{existing} cannot be written by the user that the workers run as."
        yield Check("bad", "Checkpoints cannot be saved", text, "checkpoints.directory")
    else:
        yield Check("good", "Checkpoint folder is writable", str(folder) if chosen else "")


def desktops(config: ExperimentConfig, team: Team) -> Iterator[Check]:
    slots, wanted = count_env_slots(), config.desktops.num_desktops
    if not slots:
        text = "No env worker is online; the experiment would wait for one. Start them with `make up`."
        yield Check("warning", "No desktops online", text, "desktops.num_desktops")
    elif slots < wanted:
        text = f"It will run with {slots} at a time, and take longer."
        yield Check("warning", f"{slots} of {wanted} desktops online", text, "desktops.num_desktops")
    else:
        yield Check("good", f"{wanted} of {slots} desktop slots")
    if not Worker.objects.filter(queue="gpu", status=WorkerStatus.ONLINE).exists():
        yield Check("warning", "No gpu worker online", "It stays queued until one starts (`make up`).")


def tasks(config: ExperimentConfig, team: Team) -> Iterator[Check]:
    task_set = TaskSet.objects.filter(name=config.tasks.task_set).first()
    if task_set is None:
        known = ", ".join(TaskSet.objects.values_list("name", flat=True)[:8]) or "none yet"
        text = f"Imported are: {known}. Import one with `manage.py import_tasks`."
        yield Check("bad", f"Task set {config.tasks.task_set!r} is not imported", text, "tasks.task_set")
        return
    rows = chosen_tasks(config, task_set)
    num_train = sum(row["num"] for row in rows if row["split"] == "train")
    num_heldout = sum(row["num"] for row in rows if row["split"] == "heldout")
    families = sorted({row["family"] or "(no family)" for row in rows})
    if not num_train:
        yield Check("bad", "No task to practise", _no_tasks(config, task_set), "tasks.families")
        return
    detail = ", ".join(f"{family} {_counts(rows, family)}" for family in families)
    yield Check("good", f"{num_train} train and {num_heldout} held-out tasks", f"Train/held-out: {detail}.")
    wanted = config.evaluation.num_tasks
    if wanted > num_heldout:
        text = f"Only {num_heldout} held-out tasks fit the choice: evaluations are smaller, intervals wider."
        yield Check("warning", f"{wanted} evaluation tasks wanted", text, "evaluation.num_tasks")


def chosen_tasks(config: ExperimentConfig, task_set: TaskSet) -> list[dict[str, Any]]:
    """Rows {family, split, num} of the supported tasks that the config chooses."""
    rows = TaskRecord.objects.runnable(config.desktops).filter(task_set=task_set)
    if config.tasks.families:
        rows = rows.filter(family__in=config.tasks.families)
    if config.tasks.levels:
        rows = rows.filter(level__in=config.tasks.levels)
    return list(rows.values("family", "split").annotate(num=Count("id")).order_by("family", "split"))


def _counts(rows: list[dict[str, Any]], family: str) -> str:
    found = {row["split"]: row["num"] for row in rows if (row["family"] or "(no family)") == family}
    return f"{found.get('train', 0)}/{found.get('heldout', 0)}"


def _no_tasks(config: ExperimentConfig, task_set: TaskSet) -> str:
    families = TaskRecord.objects.filter(task_set=task_set).values_list("family", flat=True).distinct()
    levels = TaskRecord.objects.filter(task_set=task_set).values_list("level", flat=True).distinct()
    known = f"families {', '.join(sorted(set(families)))}; levels {', '.join(map(str, sorted(set(levels))))}"
    return f"No supported train task of {task_set.name} has the chosen families and levels. It has {known}."


def replay(config: ExperimentConfig, team: Team) -> Iterator[Check]:
    if not config.replay.enabled:
        return
    usable = team.replayentry_set.filter(verdict__in=["accepted", "gold"])
    counts = usable.aggregate(
        num=Count("id"),
        fitting=Count("id", filter=Q(trajectory__task__task_set__name=config.tasks.task_set)),
    )
    if not counts["fitting"]:
        text = f"{counts['num']} accepted in all, none of this task set. Nothing will be injected."
        yield Check("warning", "No replay entry to inject", text, "replay.enabled")
    else:
        plural = "y" if counts["fitting"] == 1 else "ies"
        yield Check("good", f"{counts['fitting']} accepted replay entr{plural}")


def osworld(config: ExperimentConfig, team: Team) -> Iterator[Check]:
    if isinstance(section := config.desktops.provider_section, OsworldConfig):
        for title, detail, path in osworld_warnings(section):
            yield Check("warning", title, detail, path)


def budgets(config: ExperimentConfig, team: Team) -> Iterator[Check]:
    yield from budget_checks(config)


def hosts(config: ExperimentConfig, team: Team) -> Iterator[Check]:
    yield from host_checks(config)


QUESTIONS = (
    model,
    budgets,
    hosts,
    reference,
    tasks,
    group_size,
    batch_division,
    desktops,
    osworld,
    replay,
    checkpoint_folder,
)


def expected_duration(config: ExperimentConfig, *, team: Team, preset: str) -> tuple[float, str]:
    """Seconds and where they come from: finished experiments of this preset, else a rough formula.

    A finished one with other numbers of steps or tasks says how far the formula is off, not how long this
    one takes.
    """
    trained = team.experiments.exclude(config__evaluation__only=True)
    finished = trained.filter(
        preset=preset, status=ExperimentStatus.FINISHED, started_at__isnull=False, ended_at__isnull=False
    )
    known = finished.order_by("-id").annotate(took=F("ended_at") - F("started_at"))
    rows = known.values_list("took", "config")[:NUM_REMEMBERED] if preset else []
    guess = formula_seconds(config)
    took = [row.total_seconds() * guess / theirs for row, values in rows if (theirs := _guess(values))]
    if took:
        return median(took), f"from {len(took)} finished experiment{pluralize(len(took))} of this preset"
    return guess, "rough formula: turns on the desktops, then the optimiser"


def _guess(values: dict[str, Any]) -> float:
    """The formula's seconds for a stored config; 0 when today's settings do not know it any more."""
    try:
        return formula_seconds(parse_config(values))
    except ConfigError:
        return 0.0


def formula_seconds(config: ExperimentConfig) -> float:
    """Rollouts on all desktops at once plus the optimiser's own time."""
    algorithm, evaluation = config.algorithm, config.evaluation
    trained = algorithm.group_size * algorithm.groups_per_step * algorithm.num_steps
    during = algorithm.num_steps // evaluation.every if evaluation.every else 0
    evaluated = evaluation.num_tasks * (int(evaluation.before) + int(evaluation.after) + during)
    one = config.desktops.max_turns * TURNS_USED * SECONDS_PER_TURN + SECONDS_PER_RESET
    rollouts = (trained + evaluated) * one / config.desktops.num_desktops
    sft = config.sft.max_steps * SECONDS_PER_SFT_STEP if config.sft.enabled else 0.0
    return rollouts + trained * SECONDS_PER_TRAINED_TRAJECTORY + sft
