"""Pre-flight: are there tasks and replay entries of the chosen set?"""

import shlex
from collections import Counter
from collections.abc import Iterator
from typing import Any

from django.db.models import Count, Q

from training.contracts.config import CoordinateSpace, ExperimentConfig, OsworldConfig
from training.contracts.config.config_yaml import resembling
from training.tasks.supported_by.runtimes import WHERE, TaskRuntime, grouped_reasons, runtime_of
from webapp.accounts.models import Team
from webapp.experiments.models import TaskSet
from webapp.experiments.models.tasks import TaskRecordQuerySet
from webapp.launch.preflight.check import Check

MAX_REASONS = 3
LONGEST_GRID_SIDE = 640
"""Pixels: beyond, a step of the short style's grid of 10 permille is more than 6.4."""


def task_checks(config: ExperimentConfig, team: Team) -> Iterator[Check]:
    task_set = TaskSet.objects.of(team).filter(name=config.tasks.task_set).first()
    if task_set is None:
        known = ", ".join(TaskSet.objects.listed(team).values_list("name", flat=True)[:8]) or "none yet"
        command = f"manage.py import_tasks {shlex.quote(config.tasks.task_set)}"
        text = f"Imported are: {known}. A shipped set or a folder is imported with `{command}`."
        yield Check("bad", f"Task set {config.tasks.task_set!r} is not imported", text, "tasks.task_set")
        return
    yield from unknown_choices(config, task_set)
    yield from revision_checks(config, task_set)
    rows = chosen_tasks(config, task_set)
    num_train = sum(row["num"] for row in rows if row["split"] == "train")
    num_heldout = sum(row["num"] for row in rows if row["split"] == "heldout")
    families = sorted({row["family"] or "(no family)" for row in rows})
    unfit = UnfitTasks(config, task_set)
    if not num_train:
        if unfit.num_train:
            yield Check("bad", "No task runs on these desktops", unfit.detail, "desktops.provider")
        else:
            yield Check("bad", "No task to practise", _no_tasks(config, task_set), "tasks.families")
        return
    if unfit.num:
        title = f"{unfit.num} of the chosen tasks cannot run on these desktops"
        yield Check("warning", title, unfit.detail, "desktops.provider")
    detail = ", ".join(f"{family} {_counts(rows, family)}" for family in families)
    yield Check("good", f"{num_train} train and {num_heldout} held-out tasks", f"Train/held-out: {detail}.")
    yield from condition_checks(config, task_set)
    yield from grid_checks(config, task_set)
    wanted = config.evaluation.num_tasks
    if wanted > num_heldout:
        text = f"Only {num_heldout} held-out tasks fit the choice: evaluations are smaller, intervals wider."
        yield Check("warning", f"{wanted} evaluation tasks wanted", text, "evaluation.num_tasks")


def unknown_choices(config: ExperimentConfig, task_set: TaskSet) -> Iterator[Check]:
    """Families and levels that no task of the set has: a misspelt one would silently choose nothing."""
    for name, chosen in (("families", config.tasks.families), ("levels", config.tasks.levels)):
        column = {"families": "family", "levels": "level"}[name]
        rows = task_set.tasks.at(config.tasks.revision)
        known = set(rows.values_list(column, flat=True).distinct())
        for value in chosen:
            if value not in known:
                there = ", ".join(sorted(map(str, known)))
                near = resembling(str(value), map(str, known))
                text = f"{task_set.name} has {there}{near or '.'}"
                yield Check("bad", f"No {column} {value!r} in the task set", text, f"tasks.{name}")


def revision_checks(config: ExperimentConfig, task_set: TaskSet) -> Iterator[Check]:
    """What a clone or a written revision leaves out."""
    asked = config.tasks.revision
    num_newer = task_set.tasks.filter(revision__gt=asked).count() if asked else 0
    if num_newer:
        text = f"{num_newer} newer versions of tasks are left out; 0 takes revision {task_set.revision}."
        yield Check("warning", f"Revision {asked} of {task_set.name}", text, "tasks.revision")


def condition_checks(config: ExperimentConfig, task_set: TaskSet) -> Iterator[Check]:
    """What tasks were published with and this experiment does without."""
    section = config.desktops.provider_section
    if not isinstance(section, OsworldConfig) or section.machine_provider or section.enable_proxy:
        return
    if num := chosen(config, task_set).filter(spec__published__proxy=True).count():
        text = "Their web sites may answer otherwise without one; scores are not the published ones."
        yield Check("warning", f"{num} tasks expect a proxy", text, "desktops.osworld.enable_proxy")


def grid_checks(config: ExperimentConfig, task_set: TaskSet) -> Iterator[Check]:
    """Nothing where the coordinates that demonstrations are written in meet every widget."""
    prompt = config.prompt
    if prompt.permille_grid == 1 or prompt.coordinate_space is not CoordinateSpace.PERMILLE:
        return
    screens = chosen(config, task_set).values_list("spec__screen", flat=True).distinct()
    longest = max((side for screen in screens for side in screen or ()), default=0)
    if longest > LONGEST_GRID_SIDE:
        step = longest * prompt.permille_grid / 1000
        text = (
            f"Demonstrations of the style {prompt.style} are rounded to a grid of {step:.0f} pixels on a "
            f"screen of {longest}, and may miss small widgets. Another style has all 1001 coordinates."
        )
        yield Check("warning", "Coordinates are coarse on this screen", text, "prompt.style")


def chosen_tasks(config: ExperimentConfig, task_set: TaskSet) -> list[Any]:
    """Rows {family, split, num} of the supported tasks that the config chooses."""
    rows = chosen(config, task_set)
    return list(rows.values("family", "split").annotate(num=Count("id")).order_by("family", "split"))


def chosen(config: ExperimentConfig, task_set: TaskSet) -> TaskRecordQuerySet:
    """The supported tasks that the config chooses."""
    return named(config, task_set).runnable(config.desktops)


def named(config: ExperimentConfig, task_set: TaskSet) -> TaskRecordQuerySet:
    """The tasks that the config names, whether its desktops can run them or not."""
    rows = task_set.tasks.at(config.tasks.revision)
    if config.tasks.families:
        rows = rows.filter(family__in=config.tasks.families)
    if config.tasks.levels:
        rows = rows.filter(level__in=config.tasks.levels)
    return rows


class UnfitTasks:
    """The tasks that the config names and its desktops cannot run: what they lack, and who can."""

    def __init__(self, config: ExperimentConfig, task_set: TaskSet) -> None:
        here = runtime_of(config.desktops)
        rows = named(config, task_set).exclude(pk__in=chosen(config, task_set))
        found = list(rows.values_list("task_id", "split", "runs_on", "reasons"))
        self.num = len(found)
        self.num_train = sum(split == "train" for _, split, *_ in found)
        lacks = grouped_reasons((task_id, reasons.get(here, "")) for task_id, *_, reasons in found)
        lacking = "; ".join(f"{len(group.task_ids)}: {group.reason}" for group in lacks[:MAX_REASONS])
        can = Counter(runtime for *_, runs_on, _ in found for runtime in runs_on.strip("|").split("|"))
        better = max(TaskRuntime, key=lambda runtime: can[runtime])
        self.detail = f"What {self.num} lack {WHERE[here][0]}: {lacking}."
        if can[better]:
            words, knobs = WHERE[better]
            self.detail += f" {can[better]} of them can run {words} ({knobs})."


def _counts(rows: list[dict[str, Any]], family: str) -> str:
    found = {row["split"]: row["num"] for row in rows if (row["family"] or "(no family)") == family}
    return f"{found.get('train', 0)}/{found.get('heldout', 0)}"


def _no_tasks(config: ExperimentConfig, task_set: TaskSet) -> str:
    rows = task_set.tasks.at(config.tasks.revision)
    families = rows.values_list("family", flat=True).distinct()
    levels = rows.values_list("level", flat=True).distinct()
    known = f"families {', '.join(sorted(set(families)))}; levels {', '.join(map(str, sorted(set(levels))))}"
    return f"No supported train task of {task_set.name} has the chosen families and levels. It has {known}."


def replay_checks(config: ExperimentConfig, team: Team) -> Iterator[Check]:
    if not config.replay.enabled:
        return
    if config.replay.snapshot:
        yield from snapshot_checks(config, team)
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


def snapshot_checks(config: ExperimentConfig, team: Team) -> Iterator[Check]:
    """Is the pinned snapshot there, and has it entries of the task set?"""
    snapshot = team.buffer_snapshots.filter(pk=config.replay.snapshot).first()
    if snapshot is None:
        known = ", ".join(map(str, team.buffer_snapshots.values_list("pk", flat=True)[:8])) or "none yet"
        text = f"The team has {known}; 0 uses the buffer as it is."
        yield Check("bad", f"There is no buffer snapshot {config.replay.snapshot}", text, "replay.snapshot")
        return
    task_set = config.tasks.task_set
    fitting = snapshot.members.filter(entry__trajectory__task__task_set__name=task_set).count()
    if fitting:
        yield Check("good", f"{fitting} replay entr{'y' if fitting == 1 else 'ies'} of {snapshot}")
    else:
        text = f"{snapshot} has no entry of {task_set}. Nothing will be injected."
        yield Check("warning", "No replay entry to inject", text, "replay.snapshot")
