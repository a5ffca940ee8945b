"""Sweeps: a search over values of knobs, whose arms are experiments with several seeds."""

from functools import cached_property

from django.conf import settings as site
from django.db import models

from training.contracts.config import ExperimentConfig
from webapp.accounts.models import Team
from webapp.experiments.stored_config import read_stored
from webapp.experiments.sweep_plan import SweepPlan
from webapp.lib.columns.stored_fields import ReportedCharField, ReportedJSONField, ReportedTextField


class SweepStatus(models.TextChoices):
    RUNNING = "running", "Running"
    PAUSED = "paused", "Paused"
    CANCELLED = "cancelled", "Cancelled"
    FINISHED = "finished", "Finished"
    FAILED = "failed", "Failed"
    """Its first arms all failed."""


SWEEP_TRANSITIONS: dict[SweepStatus, set[SweepStatus]] = {
    SweepStatus.RUNNING: {
        SweepStatus.PAUSED, SweepStatus.CANCELLED, SweepStatus.FINISHED, SweepStatus.FAILED
    },
    SweepStatus.PAUSED: {SweepStatus.RUNNING, SweepStatus.CANCELLED},
    SweepStatus.CANCELLED: set(),
    SweepStatus.FINISHED: set(),
    SweepStatus.FAILED: set(),
}  # fmt: skip
"""What people want of the whole; each of its experiments follows with a status of its own."""


class Sweep(models.Model):
    """A search: the config that all arms share, and what is varied how."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="sweeps")
    owner = models.ForeignKey(site.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL)
    name = models.CharField(max_length=100)
    preset = ReportedCharField(max_length=60, blank=True)
    note = ReportedTextField(blank=True)
    config = ReportedJSONField()
    """`ExperimentConfig` that the arms change; read it as `settings`."""
    plan_values = ReportedJSONField()
    """`SweepPlan`; read it as `plan`."""
    priority = models.IntegerField(default=0)
    status = models.CharField(max_length=9, choices=SweepStatus, default=SweepStatus.RUNNING, db_index=True)
    message = ReportedTextField(blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [models.Index(fields=["team", "-id"], name="sweep_team_newest")]

    def __str__(self) -> str:
        return f"sweep {self.pk} {self.name}"

    @cached_property
    def settings(self) -> ExperimentConfig:
        return read_stored(ExperimentConfig, self.config)

    @cached_property
    def plan(self) -> SweepPlan:
        return read_stored(SweepPlan, self.plan_values)


class ArmStatus(models.TextChoices):
    RUNNING = "running", "Running"
    STOPPED = "stopped", "Stopped"
    """Early, since it was worse than half of the others."""
    CANCELLED = "cancelled", "Cancelled"
    FINISHED = "finished", "Finished"
    FAILED = "failed", "Failed"
    """None of its seeds came to a result."""


ARM_TRANSITIONS: dict[ArmStatus, set[ArmStatus]] = {
    ArmStatus.RUNNING: {ArmStatus.STOPPED, ArmStatus.CANCELLED, ArmStatus.FINISHED, ArmStatus.FAILED},
    ArmStatus.STOPPED: set(),
    ArmStatus.CANCELLED: set(),
    ArmStatus.FINISHED: set(),
    ArmStatus.FAILED: set(),
}


class SweepArm(models.Model):
    """One combination of values, run with every seed: a trial of the search."""

    sweep = models.ForeignKey(Sweep, on_delete=models.CASCADE, related_name="arms")
    number = models.IntegerField()
    """From 1."""
    values = ReportedJSONField()
    """Dotted knob -> value"""
    sampler_notes = ReportedJSONField(default=dict)
    """What Optuna's sampler keeps with a trial, e.g. its place in the grid."""
    status = models.CharField(max_length=9, choices=ArmStatus, default=ArmStatus.RUNNING)
    objective = models.FloatField(null=True)
    """Mean over the seeds that finished."""
    message = ReportedTextField(blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["number"]
        constraints = [models.UniqueConstraint(fields=["sweep", "number"], name="arm_once")]

    def __str__(self) -> str:
        return f"arm {self.number} of {self.sweep_id}"
