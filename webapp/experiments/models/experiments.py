"""The queue of experiments, their attempts and stages."""

from functools import cached_property

from django.conf import settings as site
from django.db import models

from training.contracts.config import ExperimentConfig
from webapp.accounts.models import Team
from webapp.experiments.stored_config import problems_of, read_stored
from webapp.lib.columns.stored_fields import ReportedCharField, ReportedJSONField, ReportedTextField
from webapp.lib.statements.json_keys import text_of

MAX_NAME = 120


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


FINAL_STATUSES = tuple(status for status in ExperimentStatus if status.is_final())
ACTIVE_STATUSES = tuple(status for status in ExperimentStatus if status.is_active())

S = ExperimentStatus
EXPERIMENT_TRANSITIONS: dict[ExperimentStatus, set[ExperimentStatus]] = {
    S.QUEUED: {S.STARTING, S.PAUSED, S.CANCELLED},
    S.STARTING: {S.RUNNING, S.QUEUED, S.PAUSING, S.CANCELLING, S.FAILED},
    S.RUNNING: {S.QUEUED, S.PAUSING, S.CANCELLING, S.FINISHED, S.FAILED},
    S.PAUSING: {S.PAUSED, S.QUEUED, S.CANCELLING, S.FINISHED, S.FAILED},
    S.PAUSED: {S.QUEUED, S.CANCELLED},
    S.CANCELLING: {S.CANCELLED, S.FINISHED, S.FAILED},
    S.CANCELLED: {S.QUEUED, S.PAUSED},
    S.FINISHED: set(),
    S.FAILED: {S.QUEUED},
}
"""RUNNING -> QUEUED is a lost gpu worker: the next attempt resumes from the last checkpoint.
CANCELLED -> QUEUED, PAUSED is an undo, of those that were cancelled while they waited."""


class Experiment(models.Model):
    """A queued training request and where it stands."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="experiments")
    owner = models.ForeignKey(site.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL)
    name = ReportedCharField(max_length=MAX_NAME)
    preset = ReportedCharField(max_length=60, blank=True)
    config = ReportedJSONField()
    model_path = models.GeneratedField(
        expression=text_of("config__model__path"), output_field=models.TextField(null=True), db_persist=True
    )
    """With the seed what its first weights are; lists of many experiments need not read whole configs."""
    model_seed = models.GeneratedField(
        expression=text_of("config__optimiser__seed"),
        output_field=models.TextField(null=True),
        db_persist=True,
    )
    """The whole resolved `ExperimentConfig` as JSON; read it as `settings`."""
    note = ReportedTextField(blank=True)
    tags = ReportedJSONField(default=list)
    is_sample = models.BooleanField(default=False)
    """A recording that `webapp/samples` made: it never runs, and what it recorded trains nothing."""
    archived_at = models.DateTimeField(null=True)
    """Since when lists leave it out unless they are asked for it."""
    status = models.CharField(max_length=10, choices=S, default=S.QUEUED, db_index=True)
    priority = models.IntegerField(default=0)
    """Higher runs first; equal ones in queue order."""
    queue_order = models.FloatField(default=0, db_index=True)
    stage = models.CharField(max_length=24, blank=True)
    step = models.IntegerField(default=0)
    policy_version = models.IntegerField(default=0)
    heartbeat_at = models.DateTimeField(null=True)
    dispatched_at = models.DateTimeField(null=True)
    """When its job was sent to `placed_worker`; null = it waits to be placed."""
    placed_worker = models.CharField(max_length=120, blank=True)
    """The gpu worker that it was last sent to."""
    placed_keys = ReportedJSONField(default=list)
    """The GPUs, or places of a host without any, that it holds there while it is sent or active."""
    placed_members = ReportedJSONField(default=list)
    """Of several hosts: [{worker, keys}] of the others, in the order of their ranks."""
    num_passed = models.IntegerField(default=0)
    """Later experiments that took what it could use, since it was queued."""
    message = ReportedTextField(blank=True)
    """What happened last, in words for people: why it waits, failed, was resumed."""
    cloned_from = models.ForeignKey("self", null=True, on_delete=models.SET_NULL)
    arm = models.ForeignKey(
        "experiments.SweepArm", null=True, on_delete=models.SET_NULL, related_name="experiments"
    )
    """The arm of a sweep of which it is one seed; null for those launched by themselves."""
    evaluates = models.ForeignKey(
        "experiments.CheckpointRecord", null=True, on_delete=models.SET_NULL, related_name="evaluated_by"
    )
    """The checkpoint that it evaluates on demand, and trains nothing."""
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [models.Index(fields=["team", "-id"], name="experiment_team_newest")]

    def __str__(self) -> str:
        return f"#{self.pk} {self.name}"

    @cached_property
    def settings(self) -> ExperimentConfig:
        """Its config; defaults stand for what this version cannot read, which `config_problems` names."""
        return read_stored(ExperimentConfig, self.config)

    @cached_property
    def config_problems(self) -> dict[str, str]:
        """Dotted name -> why this version cannot use a stored value; empty for configs of today."""
        return problems_of(self.config)

    @property
    def possible_actions(self) -> frozenset[str]:
        """What an operator may ask of it as it stands: some of pause, resume and cancel."""
        targets = EXPERIMENT_TRANSITIONS[S(self.status)]
        can = {
            "pause": S.PAUSING in targets or self.status == S.QUEUED,
            "resume": self.status in (S.PAUSED, S.FAILED) and not self.is_sample,
            "cancel": bool(targets & {S.CANCELLING, S.CANCELLED}),
        }
        return frozenset(action for action, is_possible in can.items() if is_possible)


class AttemptStatus(models.TextChoices):
    CLAIMED = "claimed", "Claimed"
    RUNNING = "running", "Running"
    FINISHED = "finished", "Finished"
    PAUSED = "paused", "Paused"
    CANCELLED = "cancelled", "Cancelled"
    CRASHED = "crashed", "Crashed"
    LOST = "lost", "Lost"
    INCOMPLETE = "incomplete", "Hosts missing"
    """Its hosts did not all come: nothing of it ran."""


class Attempt(models.Model):
    """One execution of an experiment by a gpu worker."""

    experiment = models.ForeignKey(Experiment, on_delete=models.CASCADE, related_name="attempts")
    number = models.IntegerField()
    worker_name = models.CharField(max_length=120)
    status = models.CharField(max_length=10, choices=AttemptStatus, default=AttemptStatus.CLAIMED)
    policy_url = models.CharField(max_length=300, blank=True)
    policy_certificate = ReportedTextField(blank=True)
    """PEM, the only one that env workers trust for it; "" = plain HTTP on this machine."""
    policy_token = models.CharField(max_length=80, blank=True)
    """Bearer token of this attempt's policy server; worthless after it ends."""
    gang_secret = ReportedTextField(blank=True)
    """What the first host of its gang wrote in the folder of checkpoints, which all must see."""
    reason = ReportedTextField(blank=True)
    resumed_step = models.IntegerField(null=True)
    num_gpus = models.IntegerField(null=True)
    """GPUs that it held; null = not recorded."""
    started_at = models.DateTimeField(auto_now_add=True)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["experiment", "number"], name="attempt_claimed_once")]

    def __str__(self) -> str:
        return f"{self.experiment} attempt {self.number}"

    @property
    def workers(self) -> list[str]:
        """On each of its hosts one, in the order of their ranks."""
        members = sorted(self.gang.all(), key=lambda member: member.host)
        return [member.worker_name for member in members] or [self.worker_name]


class GangMember(models.Model):
    """A host of an attempt that is spread over several."""

    attempt = models.ForeignKey(Attempt, on_delete=models.CASCADE, related_name="gang")
    host = models.IntegerField()
    """Place of its ranks; 0 = where the attempt runs."""
    worker_name = models.CharField(max_length=120)
    address = models.CharField(max_length=300, blank=True)
    """IP:PORT in the network of the ranks; "" until it has come."""
    problem = ReportedTextField(blank=True)
    """Why it left."""
    is_left_alone = models.BooleanField(default=False)
    """It left because others did not come: nothing failed here."""

    class Meta:
        constraints = [models.UniqueConstraint(fields=["attempt", "host"], name="gang_host_once")]

    def __str__(self) -> str:
        return f"host {self.host} of {self.attempt}"


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
    unit = ReportedCharField(max_length=16, blank=True)
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["position"]
        constraints = [models.UniqueConstraint(fields=["experiment", "name"], name="stage_once")]

    def __str__(self) -> str:
        return self.name
