"""Task sets and the versions of their tasks."""

from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import Q

from training.contracts.config import DesktopConfig, TaskConfig
from training.contracts.task import MAX_FAMILY, MAX_ID
from training.contracts.types import Task
from training.tasks.supported_by.operating_system import TITLES
from training.tasks.supported_by.runtimes import TaskRuntime, runtime_of
from webapp.accounts.models import Team
from webapp.lib.columns.stored_fields import ReportedCharField, ReportedJSONField, ReportedTextField

WORKBENCH = "workbench_"
"""Sets whose names begin so hold what a team tries before it saves it; people's names hold no "_"."""


class TaskSetQuerySet(models.QuerySet["TaskSet"]):
    """Task sets by who may see them."""

    def of(self, team: Team | int) -> "TaskSetQuerySet":
        """The team's own sets and those that all teams share."""
        return self.filter(Q(team=None) | Q(team=team))

    def listed(self, team: Team | int) -> "TaskSetQuerySet":
        """Those of the same that people choose from, by name."""
        return self.of(team).exclude(name__startswith=WORKBENCH).order_by("name")


class TaskSet(models.Model):
    """Tasks that are imported or written together. Every change of a task is another revision of the set."""

    name = models.SlugField(max_length=60, unique=True)
    team = models.ForeignKey(Team, null=True, on_delete=models.CASCADE)
    """Whose it is; null: imported by the installation, for all teams, and changed by imports alone."""
    revision = models.IntegerField(default=1)
    """The newest one; experiments keep to the one that they were queued with."""
    title = ReportedCharField(max_length=120, blank=True)
    origin = ReportedCharField(max_length=200, blank=True)
    """Where it came from: a generator's name and seed, a folder, a parquet file."""
    created_at = models.DateTimeField(auto_now_add=True)

    objects = TaskSetQuerySet.as_manager()

    def __str__(self) -> str:
        return self.name


class TaskStatus(models.TextChoices):
    SUPPORTED = "supported", "Supported"
    UNSUPPORTED = "unsupported", "Unsupported"


MAX_WORDS = 6


class TaskRecordQuerySet(models.QuerySet["TaskRecord"]):
    """Tasks by version, by who may see them and by who can run them."""

    def current(self) -> "TaskRecordQuerySet":
        """The newest version of every task."""
        return self.filter(replaced_in=None)

    def at(self, revision: int) -> "TaskRecordQuerySet":
        """The versions that a revision of their set consists of; 0 = the newest one."""
        if not revision:
            return self.current()
        return self.filter(Q(replaced_in=None) | Q(replaced_in__gt=revision), revision__lte=revision)

    def of(self, team: Team | int) -> "TaskRecordQuerySet":
        """Tasks of the team's own sets and of those that all teams share."""
        return self.filter(Q(task_set__team=None) | Q(task_set__team=team))

    def listed(self) -> "TaskRecordQuerySet":
        """Without those of a workbench."""
        return self.exclude(task_set__name__startswith=WORKBENCH)

    def named_by(self, tasks: TaskConfig, team: Team | int) -> "TaskRecordQuerySet":
        """All tasks of the set, at the revision, that the team's config names."""
        return self.of(team).filter(task_set__name=tasks.task_set).at(tasks.revision)

    def with_words(self, words: str) -> "TaskRecordQuerySet":
        """Tasks whose instruction or id has each of the first `MAX_WORDS` words."""
        rows = self
        for word in words.split()[:MAX_WORDS]:
            rows = rows.filter(Q(instruction__icontains=word) | Q(task_id__icontains=word))
        return rows

    def runnable(self, desktops: DesktopConfig) -> "TaskRecordQuerySet":
        """Tasks that an experiment with these desktops can set up and score."""
        runtime = runtime_of(desktops)
        if runtime is TaskRuntime.OWN:
            return self.filter(status=TaskStatus.SUPPORTED)
        return self.filter(runs_on__contains=f"|{runtime}|")


class TaskRecord(models.Model):
    """One version of a task; `spec` is `training.contracts.types.Task` as JSON, and never changes."""

    task_set = models.ForeignKey(TaskSet, on_delete=models.CASCADE, related_name="tasks")
    task_id = models.CharField(max_length=MAX_ID)
    instruction = ReportedTextField()
    family = models.CharField(max_length=MAX_FAMILY, blank=True, db_index=True)
    level = models.IntegerField(default=1)
    split = models.CharField(max_length=8, db_index=True)
    spec = ReportedJSONField()
    version = models.IntegerField(default=1)
    revision = models.IntegerField(default=1)
    """Of the set, since which this version stands."""
    replaced_in = models.IntegerField(null=True)
    """Revision of the set from which another version, or none, stands in its place; null = the newest."""
    note = ReportedCharField(max_length=300, blank=True)
    """Why it was written."""
    author = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL)
    """Null: an import."""
    written_at = models.DateTimeField(auto_now_add=True, null=True)
    """Null: before versions were kept."""
    status = models.CharField(max_length=12, choices=TaskStatus, default=TaskStatus.SUPPORTED)
    """By our own verbs and evaluators; `runs_on` has every runtime."""
    reason = ReportedTextField(blank=True)
    """Which setup verb or evaluator is missing."""
    runs_on = ReportedCharField(max_length=80, blank=True)
    """Runtimes (training.tasks.supported_by.runtimes) that can run it: "|own|osworld|"."""
    reasons = ReportedJSONField(default=dict)
    """TaskRuntime -> why it cannot, for those that cannot."""
    oracle_score = models.FloatField(null=True)
    idle_score = models.FloatField(null=True)
    verified_at = models.DateTimeField(null=True)

    objects = TaskRecordQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["task_set", "task_id", "version"], name="task_version_once"),
            models.UniqueConstraint(
                fields=["task_set", "task_id"],
                condition=Q(replaced_in=None),
                name="task_current_once_per_set",
            ),
        ]

    def __str__(self) -> str:
        return self.task_id

    @classmethod
    def made_from(cls, task: Task, **values: Any) -> "TaskRecord":
        """A row of it, not yet saved; `values` are its other columns."""
        return cls(
            task_id=task.task_id,
            instruction=task.instruction,
            family=task.family,
            level=task.level,
            split=task.split,
            spec=task.model_dump(mode="json"),
            **values,
        )

    def can_run_on(self, desktops: DesktopConfig) -> bool:
        """Whether such desktops can set it up and score it, as `runnable` says of many."""
        runtime = runtime_of(desktops)
        if runtime is TaskRuntime.OWN:
            return self.status == TaskStatus.SUPPORTED
        return f"|{runtime}|" in self.runs_on

    @property
    def needs_office(self) -> bool:
        """Of our desktops, only those with LibreOffice and Chromium can run it."""
        return self.status == TaskStatus.UNSUPPORTED and f"|{TaskRuntime.OWN_OFFICE}|" in self.runs_on

    @property
    def other_reasons(self) -> list[tuple[str, str]]:
        """(runtime, why it cannot run it) of those that are not Deskhand's desktops, and of its system."""
        reasons = self.reasons.items()
        return [pair for pair in reasons if pair[0] != TaskRuntime.OWN and "it is made for" not in pair[1]]

    @property
    def other_system(self) -> str:
        """Windows, macOS or Android, where only desktops of that system can run it; else ""."""
        if self.status != TaskStatus.UNSUPPORTED:
            return ""
        systems = {runtime.system for runtime in TaskRuntime if f"|{runtime}|" in self.runs_on}
        return TITLES[systems.pop()] if systems and "linux" not in systems else ""
