"""Task sets, the queue of experiments, and what their attempts measured."""

from django.conf import settings
from django.db import models

from training.config import DesktopConfig
from training.tasks.judges import Judge, judge_of
from webapp.accounts.models import Team


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


class TaskRecordQuerySet(models.QuerySet):
    """Tasks by who can run them."""

    def runnable(self, desktops: DesktopConfig) -> "TaskRecordQuerySet":
        """Tasks that an experiment with these desktops can set up and score."""
        judge = judge_of(desktops)
        if judge is Judge.OWN:
            return self.filter(status=TaskStatus.SUPPORTED)
        return self.filter(runs_on__contains=f"|{judge}|")


class TaskRecord(models.Model):
    """One task of a set; `spec` is `training.types.Task` as JSON."""

    task_set = models.ForeignKey(TaskSet, on_delete=models.CASCADE, related_name="tasks")
    task_id = models.CharField(max_length=120)
    instruction = models.TextField()
    family = models.CharField(max_length=40, blank=True, db_index=True)
    level = models.IntegerField(default=1)
    split = models.CharField(max_length=8, db_index=True)
    spec = models.JSONField()
    status = models.CharField(max_length=12, choices=TaskStatus, default=TaskStatus.SUPPORTED)
    """By our own verbs and evaluators; `runs_on` has every judge."""
    reason = models.TextField(blank=True)
    """Which setup verb or evaluator is missing."""
    runs_on = models.CharField(max_length=80, blank=True)
    """Judges (training.tasks.judges) that can run it: "|own|osworld|"."""
    reasons = models.JSONField(default=dict)
    """Judge -> why it cannot, for those that cannot."""
    oracle_score = models.FloatField(null=True)
    idle_score = models.FloatField(null=True)
    verified_at = models.DateTimeField(null=True)

    objects = TaskRecordQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["task_set", "task_id"], name="task_once_per_set")]

    def __str__(self) -> str:
        return self.task_id


class ExperimentStatus(models.TextChoices):
    QUEUED = "queued", "Queued"
    STARTING = "starting", "Starting"
    RUNNING = "running", "Running"
    PAUSING = "pausing", "Pausing"
    PAUSED = "paused", "Paused"
    CANCELLING = "cancelling", "Cancelling"
    CANCELLED = "cancelled", "Cancelled"
    FINISHED = "finished", "Finished"
    FAILED = "failed", "Failed"

    def is_final(self) -> bool:
        return self in (self.CANCELLED, self.FINISHED, self.FAILED)

    def is_active(self) -> bool:
        """True while a gpu worker is meant to hold it."""
        return self in (self.STARTING, self.RUNNING, self.PAUSING, self.CANCELLING)


S = ExperimentStatus
EXPERIMENT_TRANSITIONS: dict[ExperimentStatus, set[ExperimentStatus]] = {
    S.QUEUED: {S.STARTING, S.PAUSED, S.CANCELLED},
    S.STARTING: {S.RUNNING, S.QUEUED, S.PAUSING, S.CANCELLING, S.FAILED},
    S.RUNNING: {S.QUEUED, S.PAUSING, S.CANCELLING, S.FINISHED, S.FAILED},
    S.PAUSING: {S.PAUSED, S.QUEUED, S.CANCELLING, S.FINISHED, S.FAILED},
    S.PAUSED: {S.QUEUED, S.CANCELLED},
    S.CANCELLING: {S.CANCELLED, S.FINISHED, S.FAILED},
    S.CANCELLED: set(),
    S.FINISHED: set(),
    S.FAILED: {S.QUEUED},
}
"""RUNNING -> QUEUED is a lost gpu worker: the next attempt resumes from the last checkpoint."""


class Experiment(models.Model):
    """A queued training request and where it stands."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="experiments")
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL)
    name = models.CharField(max_length=120)
    preset = models.CharField(max_length=60, blank=True)
    config = models.JSONField()
    """The whole resolved `ExperimentConfig`."""
    note = models.TextField(blank=True)
    status = models.CharField(max_length=10, choices=S, default=S.QUEUED, db_index=True)
    priority = models.IntegerField(default=0)
    """Higher runs first; equal ones in queue order."""
    queue_order = models.FloatField(default=0, db_index=True)
    stage = models.CharField(max_length=24, blank=True)
    step = models.IntegerField(default=0)
    policy_version = models.IntegerField(default=0)
    heartbeat_at = models.DateTimeField(null=True)
    dispatched_at = models.DateTimeField(null=True)
    """When its job was last sent to the gpu queue."""
    message = models.TextField(blank=True)
    """What happened last, in words for people: why it waits, failed, was resumed."""
    cloned_from = models.ForeignKey("self", null=True, on_delete=models.SET_NULL)
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [models.Index(fields=["team", "-id"], name="experiment_team_newest")]

    def __str__(self) -> str:
        return f"#{self.pk} {self.name}"


class AttemptStatus(models.TextChoices):
    CLAIMED = "claimed", "Claimed"
    RUNNING = "running", "Running"
    FINISHED = "finished", "Finished"
    PAUSED = "paused", "Paused"
    CANCELLED = "cancelled", "Cancelled"
    CRASHED = "crashed", "Crashed"
    LOST = "lost", "Lost"


class Attempt(models.Model):
    """One execution of an experiment by a gpu worker."""

    experiment = models.ForeignKey(Experiment, on_delete=models.CASCADE, related_name="attempts")
    number = models.IntegerField()
    worker_name = models.CharField(max_length=120)
    status = models.CharField(max_length=10, choices=AttemptStatus, default=AttemptStatus.CLAIMED)
    policy_url = models.CharField(max_length=120, blank=True)
    policy_token = models.CharField(max_length=80, blank=True)
    """Bearer token of this attempt's policy server; worthless after it ends."""
    reason = models.TextField(blank=True)
    resumed_step = models.IntegerField(null=True)
    started_at = models.DateTimeField(auto_now_add=True)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["experiment", "number"], name="attempt_claimed_once")]

    def __str__(self) -> str:
        return f"{self.experiment} attempt {self.number}"


class StageStatus(models.TextChoices):
    PENDING = "pending", "Pending"
    RUNNING = "running", "Running"
    FINISHED = "finished", "Finished"


class Stage(models.Model):
    """A named part of an experiment with its progress."""

    experiment = models.ForeignKey(Experiment, on_delete=models.CASCADE, related_name="stages")
    name = models.CharField(max_length=24)
    position = models.IntegerField()
    status = models.CharField(max_length=8, choices=StageStatus, default=StageStatus.PENDING)
    done = models.IntegerField(default=0)
    total = models.IntegerField(default=0)
    unit = models.CharField(max_length=16, blank=True)
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["position"]
        constraints = [models.UniqueConstraint(fields=["experiment", "name"], name="stage_once")]

    def __str__(self) -> str:
        return self.name


class MetricPoint(models.Model):
    """One value of one series. A resumed attempt overwrites the steps that it repeats."""

    experiment = models.ForeignKey(Experiment, on_delete=models.CASCADE, related_name="metrics")
    name = models.CharField(max_length=60)
    step = models.IntegerField()
    value = models.FloatField()
    attempt = models.IntegerField(default=1)
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["experiment", "name", "step"], name="one_value_per_step")
        ]

    def __str__(self) -> str:
        return f"{self.name}[{self.step}] = {self.value}"


class Evaluation(models.Model):
    """Success over held-out tasks at one policy version."""

    experiment = models.ForeignKey(Experiment, on_delete=models.CASCADE, related_name="evaluations")
    name = models.CharField(max_length=24)
    step = models.IntegerField()
    policy_version = models.IntegerField()
    split = models.CharField(max_length=8)
    num_tasks = models.IntegerField()
    num_success = models.IntegerField()
    success = models.FloatField()
    low = models.FloatField()
    high = models.FloatField()
    per_family = models.JSONField(default=dict)
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["id"]
        constraints = [models.UniqueConstraint(fields=["experiment", "name", "step"], name="evaluation_once")]

    def __str__(self) -> str:
        return f"{self.name}: {self.num_success}/{self.num_tasks}"


class CheckpointRecord(models.Model):
    """A saved checkpoint folder."""

    experiment = models.ForeignKey(Experiment, on_delete=models.CASCADE, related_name="checkpoints")
    step = models.IntegerField()
    policy_version = models.IntegerField()
    path = models.CharField(max_length=400)
    size_bytes = models.BigIntegerField(default=0)
    is_best = models.BooleanField(default=False)
    success = models.FloatField(null=True)
    deleted_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["step"]
        constraints = [models.UniqueConstraint(fields=["experiment", "path"], name="checkpoint_once")]

    def __str__(self) -> str:
        return self.path


class AlarmRecord(models.Model):
    """A guard that fired."""

    experiment = models.ForeignKey(Experiment, on_delete=models.CASCADE, related_name="alarms")
    name = models.CharField(max_length=40)
    severity = models.CharField(max_length=8)
    step = models.IntegerField()
    value = models.FloatField()
    limit = models.FloatField()
    message = models.TextField()
    remedy = models.TextField()
    num_times = models.IntegerField(default=1)
    """Repeats raise this and move `step`; the first row stays the only one per name."""
    at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["experiment", "name"], name="alarm_once")]

    def __str__(self) -> str:
        return self.name


class Incident(models.Model):
    """Something that happened to the experiment, told on its page: crash, resume, lost worker."""

    experiment = models.ForeignKey(Experiment, on_delete=models.CASCADE, related_name="incidents")
    kind = models.CharField(max_length=32)
    message = models.TextField()
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return self.message
