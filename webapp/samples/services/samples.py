"""The sample runs of a team, out of the recording: one that finished, with a branch, a take-over and an inbox
of eight, and one that failed.

Everything is final when it is stored, so no dispatcher or worker looks at it; a second call changes nothing.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from zipfile import ZipFile

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Manager

from training.contracts.types import Task
from webapp.accounts.models import AuditAction, Team
from webapp.accounts.services.audit_log import log_action
from webapp.experiments.log_files import log_folder
from webapp.experiments.models import (
    AlarmRecord,
    Evaluation,
    EvaluationTasks,
    Experiment,
    Incident,
    MetricPoint,
    Stage,
    TaskRecord,
)
from webapp.experiments.services.task_sets import import_task_set
from webapp.live.event_publishing import publish
from webapp.replay.services.inbox import offer_to_inbox
from webapp.trajectories.models import Group, Trajectory, TurnRecord
from webapp.trajectories.services.frames import store_frame

RECORDING = Path(__file__).parents[1] / "recording.zip"
TASK_SET = "sample"


@dataclass(frozen=True, slots=True)
class Samples:
    """The sample runs of a team."""

    finished: Experiment
    failed: Experiment


def samples_of(team: Team) -> Samples | None:
    rows = list(Experiment.objects.filter(team=team, is_sample=True).order_by("pk")[:2])
    return Samples(*rows) if len(rows) > 1 else None


@transaction.atomic
def seed(*, team: Team, user: User | None = None) -> Samples:
    """Make them, or answer those that there are."""
    Team.objects.select_for_update().get(pk=team.pk)  # two who press the button at once make them once
    if known := samples_of(team):
        return known
    with ZipFile(RECORDING) as archive:
        recorded = json.loads(archive.read("run.json"))
        for name in archive.namelist():
            if name.endswith(".png"):
                store_frame(team, archive.read(name), sha256=name.removesuffix(".png"))
    specs = [Task.model_validate(spec) for spec in recorded["tasks"].values()]
    task_set = import_task_set(name=TASK_SET, origin="samples", tasks=specs, title="Sample").task_set
    tasks = {task.task_id: task for task in task_set.tasks.all()}
    found = Samples(*(RecordedRun(team, run, tasks).store(user) for run in recorded["runs"]))
    log_action(AuditAction.IMPORTED, person=user, team=team, kind="sample", experiments=2)
    publish("queue", "experiment.created", {"experiment": found.finished.pk})
    return found


@dataclass(slots=True)
class RecordedRun:
    """A run of the archive, on its way into a team."""

    team: Team
    run: dict[str, Any]
    tasks: dict[str, TaskRecord]
    groups: dict[int, Group] = field(default_factory=dict)
    """Number in the recording -> row."""
    members: dict[int, Trajectory] = field(default_factory=dict)

    def store(self, user: User | None) -> Experiment:
        run, own = self.run, {"team": self.team, "owner": user, "is_sample": True}
        experiment = _store(Experiment.objects, run["experiment"], **own)
        for found in run["groups"]:
            self._store_group(experiment, found)
        Stage.objects.bulk_create(Stage(experiment=experiment, **row) for row in run["stages"])
        AlarmRecord.objects.bulk_create(AlarmRecord(experiment=experiment, **row) for row in run["alarms"])
        Incident.objects.bulk_create(Incident(experiment=experiment, **row) for row in run["incidents"])
        MetricPoint.objects.bulk_create(
            MetricPoint(experiment=experiment, name=metric, step=step, value=value)
            for metric, step, value in run["metrics"]
        )
        for found in run["evaluations"]:
            self._store_evaluation(experiment, found)
        if run["log"]:
            folder = log_folder(experiment.pk)
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "trainer-1.log").write_text(run["log"])
        for number in run["inbox"]:
            offer_to_inbox(trajectory=self.members[number])
        experiment.refresh_from_db()
        return experiment

    def _store_group(self, experiment: Experiment, found: dict[str, Any]) -> None:
        task = self.tasks[found["task"]]
        own = {"team": self.team, "experiment": experiment, "task": task}
        parent = self.members.get(found["parent"])
        group = _store(Group.objects, found["group"], attempt=1, parent=parent, **own)
        self.groups[found["number"]] = group
        for member in found["members"]:
            row = _store(Trajectory.objects, member["trajectory"], group=group, **own)
            TurnRecord.objects.bulk_create(TurnRecord(trajectory=row, **turn) for turn in member["turns"])
            self.members[member["number"]] = row

    def _store_evaluation(self, experiment: Experiment, found: dict[str, Any]) -> None:
        evaluation = Evaluation.objects.create(experiment=experiment, **found["evaluation"])
        results = {
            task: [solved, samples, self.groups[group].pk if group in self.groups else 0]
            for task, (solved, samples, group) in found["tasks"].items()
        }
        EvaluationTasks.objects.create(evaluation=evaluation, results=results)


def _store(rows: Manager[Any], values: dict[str, Any], **own: Any) -> Any:
    """A row as it was recorded, made when it was made."""
    row = rows.create(**values, **own)
    rows.filter(pk=row.pk).update(created_at=values["created_at"])
    return row
