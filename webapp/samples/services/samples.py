"""The sample runs of a team, out of the recording: one that finished, one that failed, a branch, a take-over,
an inbox of eight.

Everything is final when it is stored, so no dispatcher or worker looks at it; a second call changes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from zipfile import ZipFile

from django.contrib.auth.models import User
from django.db import transaction

from training.contracts.types import Purpose, Source, Task
from webapp.accounts.models import AuditAction, Team
from webapp.accounts.services.audit_log import log_action
from webapp.experiments.models import (
    Evaluation,
    EvaluationTasks,
    Experiment,
    ExperimentStatus,
    MetricPoint,
    Stage,
    TaskRecord,
)
from webapp.experiments.services.task_sets import import_task_set
from webapp.live.event_publishing import publish
from webapp.replay.services.inbox import offer_to_inbox
from webapp.samples.services.failed_run import fail_at_step
from webapp.samples.services.stories import branch_of, take_over_of
from webapp.trajectories.models import Group, Trajectory, TurnRecord
from webapp.trajectories.services.frames import store_frame

RECORDING = Path(__file__).parents[1] / "recording.zip"
TASK_SET = "sample"
NUM_INBOX = 8
FINISHED = "Sample: First desk"
FAILED = "Sample: First desk, ten times the learning rate"
NOTE = "A recorded run of four steps, to look around in. Delete it with the button above."
FAILED_NOTE = "Made of the first steps of the recorded run beside it, to show what a failure looks like."


@dataclass(frozen=True, slots=True)
class Samples:
    """The sample runs of a team."""

    finished: Experiment
    failed: Experiment


def samples_of(team: Team) -> Samples | None:
    """Those that there are."""
    rows = list(Experiment.objects.filter(team=team, is_sample=True).order_by("pk")[:2])
    return Samples(*rows) if len(rows) > 1 else None


@transaction.atomic
def seed(*, team: Team, user: User | None = None) -> Samples:
    """Make them, or answer those that there are."""
    Team.objects.select_for_update().get(pk=team.pk)  # two who press the button at once make them once
    if known := samples_of(team):
        return known
    recording = Recording.read(team)
    finished = recording.store_run(FINISHED, user, note=NOTE)
    failed = recording.store_run(FAILED, user, note=FAILED_NOTE, last_step=1)
    fail_at_step(failed, 2)
    log_action(AuditAction.IMPORTED, person=user, team=team, kind="sample", experiments=2)
    publish("queue", "experiment.created", {"experiment": finished.pk})
    return Samples(finished, failed)


@dataclass(slots=True)
class Recording:
    """The run of the archive, on its way into a team."""

    team: Team
    run: dict[str, Any]
    tasks: dict[str, TaskRecord]
    groups: dict[int, Group] = field(default_factory=dict)
    """Number in the recording -> row, of the run that is stored now."""

    @classmethod
    def read(cls, team: Team) -> Recording:
        """With its tasks and screenshots stored."""
        with ZipFile(RECORDING) as archive:
            run = json.loads(archive.read("run.json"))
            for name in archive.namelist():
                if name.endswith(".png"):
                    store_frame(team, archive.read(name), sha256=name.removesuffix(".png"))
        specs = [Task.model_validate(spec) for spec in run["tasks"].values()]
        task_set = import_task_set(name=TASK_SET, origin="samples", tasks=specs, title="Sample").task_set
        return cls(team, run, {task.task_id: task for task in task_set.tasks.all()})

    def store_run(
        self, name: str, user: User | None, *, note: str, last_step: int | None = None
    ) -> Experiment:
        """The run, or its steps up to `last_step` without what came at its end."""
        run = self.run
        experiment = Experiment.objects.create(
            team=self.team, owner=user, name=name, note=note, is_sample=True,
            status=ExperimentStatus.FINISHED, preset=run["preset"], config=run["config"],
            step=run["step"] if last_step is None else last_step, policy_version=run["policy_version"],
        )  # fmt: skip
        times = {name: run[name] for name in ("created_at", "started_at", "ended_at")}
        Experiment.objects.filter(pk=experiment.pk).update(**times)
        within = [found for found in run["groups"] if last_step is None or found["step"] <= last_step]
        wanted = [found for found in within if last_step is None or found["purpose"] == Purpose.TRAIN]
        self.groups = {found["number"]: self._group(experiment, found) for found in wanted}
        Stage.objects.bulk_create(Stage(experiment=experiment, **stage) for stage in run["stages"])
        MetricPoint.objects.bulk_create(
            MetricPoint(experiment=experiment, name=metric, step=step, value=value)
            for metric, step, value in run["metrics"]
            if last_step is None or step <= last_step
        )
        evaluations = [found for found in run["evaluations"] if last_step is None or found["step"] == 0]
        for found in evaluations:
            self._evaluation(experiment, found)
        if last_step is None:
            self._stories(experiment)
        experiment.refresh_from_db()
        return experiment

    def _group(self, experiment: Experiment, found: dict[str, Any]) -> Group:
        values = {name: value for name, value in found.items() if name not in ("number", "task", "members")}
        created_at = values.pop("created_at")
        task = self.tasks[found["task"]]
        group = Group.objects.create(
            team=self.team,
            experiment=experiment,
            attempt=1,
            task=task,
            finished_seq=found["number"],
            **values,
        )
        Group.objects.filter(pk=group.pk).update(created_at=created_at)
        for member in found["members"]:
            store_member(group, member)
        return group

    def _evaluation(self, experiment: Experiment, found: dict[str, Any]) -> None:
        values = {name: value for name, value in found.items() if name != "tasks"}
        evaluation = Evaluation.objects.create(experiment=experiment, **values)
        results = {
            task: [solved, samples, self.groups[group].pk if group in self.groups else 0]
            for task, (solved, samples, group) in found["tasks"].items()
        }
        EvaluationTasks.objects.create(evaluation=evaluation, results=results)

    def _stories(self, experiment: Experiment) -> None:
        """A branch, a take-over, and the inbox."""
        trained = Trajectory.objects.filter(experiment=experiment, purpose=Purpose.TRAIN)
        rows = list(trained.select_related("group", "task").prefetch_related("turns").order_by("pk"))
        branch_of(rows)
        take_over_of(rows)
        offered = Trajectory.objects.filter(experiment=experiment).order_by("pk")
        admitted: list[Any] = []
        for row in _told_apart(offered):
            if len(admitted) == NUM_INBOX:
                break
            if (entry := offer_to_inbox(trajectory=row)) is not None:
                admitted.append(entry)


def _told_apart(rows: Iterable[Trajectory]) -> list[Trajectory]:
    """Branch and take-over first, then one of each task in turn."""
    first, others, seen = [], [], set()
    for row in rows:
        if row.purpose == Purpose.BRANCH or row.source == Source.HUMAN:
            first.append(row)
        elif row.purpose == Purpose.TRAIN:
            others.append((row.task_id in seen, row.pk, row))
            seen.add(row.task_id)
    return [*first, *(row for *_, row in sorted(others, key=lambda found: found[:2]))]


def store_member(group: Group, found: dict[str, Any]) -> Trajectory:
    """A recorded trajectory with its turns."""
    values = {name: value for name, value in found.items() if name != "turns"}
    created_at = values.pop("created_at")
    row = Trajectory.objects.create(
        team=group.team, experiment=group.experiment, group=group, task=group.task, **values
    )
    Trajectory.objects.filter(pk=row.pk).update(created_at=created_at)
    TurnRecord.objects.bulk_create(TurnRecord(trajectory=row, **turn) for turn in found["turns"])
    return row
