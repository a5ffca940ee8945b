"""Scripted runs against an evaluator, and the exploits that they found."""

from datetime import timedelta

from django.conf import settings
from django.db import models

from webapp.accounts.models import Team
from webapp.experiments.models import TaskRecord
from webapp.lib.columns.stored_fields import ReportedCharField, ReportedJSONField
from webapp.lib.long_work import LongWork
from webapp.trajectories.models import Group, Trajectory


class RunKind(models.TextChoices):
    ATTACK = "attack", "Attack"
    """Must not be paid: an attacker that does not do the task."""
    EXPLOIT = "exploit", "Known exploit"
    """The same, of one that was found before."""
    SUCCESS = "success", "Recorded success"
    """Must be paid: a recorded success, done again."""


class Exploit(models.Model):
    """A script that was paid without doing the task; a regression test of every later version of it."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="exploits")
    task = models.ForeignKey(TaskRecord, on_delete=models.CASCADE, related_name="exploits")
    """The version in which it was found first."""
    name = ReportedCharField(max_length=120)
    script = ReportedJSONField()
    """`scripts.Script` as JSON."""
    digest = models.CharField(max_length=64)
    """Of the script, to keep each once."""
    score = models.FloatField()
    trajectory = models.ForeignKey(Trajectory, null=True, on_delete=models.SET_NULL, related_name="+")
    """The run that was paid."""
    dismissed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    dismissed_why = ReportedCharField(max_length=300, blank=True)
    """Not "": a person says that it does the task; no later version has to refuse it."""
    found_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(fields=["team", "task", "digest"], name="exploit_once_per_task")
        ]

    def __str__(self) -> str:
        return f"exploit {self.pk}: {self.name}"


class ScriptedRun(models.Model):
    """What one place of a group does; tries of the place that errored are run again alike."""

    group = models.ForeignKey(Group, on_delete=models.CASCADE, related_name="scripted_runs")
    member = models.IntegerField()
    kind = models.CharField(max_length=7, choices=RunKind)
    name = ReportedCharField(max_length=120)
    script = ReportedJSONField()
    exploit = models.ForeignKey(Exploit, null=True, on_delete=models.SET_NULL, related_name="runs")
    success = models.ForeignKey(Trajectory, null=True, on_delete=models.SET_NULL, related_name="+")
    """The recorded success that is done again."""

    class Meta:
        ordering = ["group_id", "member"]
        constraints = [models.UniqueConstraint(fields=["group", "member"], name="script_once_per_place")]

    def __str__(self) -> str:
        return f"{self.name} in group {self.group_id}"


class ModelAttackStatus(models.TextChoices):
    QUEUED = "queued", "Queued"
    ASKING = "asking", "Asking"
    FINISHED = "finished", "Finished"
    FAILED = "failed", "Failed"


M = ModelAttackStatus
MODEL_ATTACK_TRANSITIONS: dict[ModelAttackStatus, set[ModelAttackStatus]] = {
    M.QUEUED: {M.ASKING, M.FAILED},
    M.ASKING: {M.FINISHED, M.FAILED},
    M.FINISHED: set(),
    M.FAILED: set(),
}
OPEN = (M.QUEUED, M.ASKING)


class ModelAttack(LongWork):
    """A language model that is asked once for scripts against one version of a task."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="model_attacks")
    task = models.ForeignKey(TaskRecord, on_delete=models.CASCADE, related_name="model_attacks")
    chat = ReportedJSONField()
    """`lib.chat.ChatModel` as JSON."""
    status = models.CharField(max_length=8, choices=M, default=M.QUEUED, db_index=True)
    group = models.ForeignKey(Group, null=True, on_delete=models.SET_NULL, related_name="+")
    """Where its scripts run."""
    num_scripts = models.IntegerField(default=0)
    num_prompt_tokens = models.BigIntegerField(default=0)
    num_completion_tokens = models.BigIntegerField(default=0)
    """As the model's server counted them."""
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )

    TRANSITIONS = MODEL_ATTACK_TRANSITIONS
    BEGINS = {M.QUEUED: M.ASKING}
    SILENT_AFTER = timedelta(minutes=15)
    """Four tries of two minutes, and the pauses between them, take less."""

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return f"model attack {self.pk} ({self.status})"

    def publish(self) -> None:
        """Its page looks again by itself."""

    def may_go_on(self, num_lost: int) -> bool:
        """Asking twice would cost twice."""
        return self.status == M.QUEUED and super().may_go_on(num_lost)

    def advice(self, num_lost: int) -> str:
        return "Ask again."
