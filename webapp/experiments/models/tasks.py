"""Task sets and their tasks."""

from django.db import models
from django.db.models import Q

from training.contracts.config import DesktopConfig
from training.tasks.supported_by.runtimes import TaskRuntime, runtime_of


class TaskSet(models.Model):
    """Tasks imported together."""

    name = models.SlugField(max_length=60, unique=True)
    title = models.CharField(max_length=120, blank=True)
    origin = models.CharField(max_length=200, blank=True)
    """Where it came from: a generator's name and seed, a folder, a parquet file."""
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.name


class TaskStatus(models.TextChoices):
    SUPPORTED = "supported", "Supported"
    UNSUPPORTED = "unsupported", "Unsupported"


MAX_WORDS = 6


class TaskRecordQuerySet(models.QuerySet):
    """Tasks by who can run them."""

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
    """One task of a set; `spec` is `training.contracts.types.Task` as JSON."""

    task_set = models.ForeignKey(TaskSet, on_delete=models.CASCADE, related_name="tasks")
    task_id = models.CharField(max_length=120)
    instruction = models.TextField()
    family = models.CharField(max_length=40, blank=True, db_index=True)
    level = models.IntegerField(default=1)
    split = models.CharField(max_length=8, db_index=True)
    spec = models.JSONField()
    status = models.CharField(max_length=12, choices=TaskStatus, default=TaskStatus.SUPPORTED)
    """By our own verbs and evaluators; `runs_on` has every runtime."""
    reason = models.TextField(blank=True)
    """Which setup verb or evaluator is missing."""
    runs_on = models.CharField(max_length=80, blank=True)
    """Runtimes (training.tasks.supported_by.runtimes) that can run it: "|own|osworld|"."""
    reasons = models.JSONField(default=dict)
    """TaskRuntime -> why it cannot, for those that cannot."""
    oracle_score = models.FloatField(null=True)
    idle_score = models.FloatField(null=True)
    verified_at = models.DateTimeField(null=True)

    objects = TaskRecordQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["task_set", "task_id"], name="task_once_per_set")]

    def __str__(self) -> str:
        return self.task_id
