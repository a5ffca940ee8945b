"""Saved checkpoints and what people asked of them."""

from datetime import timedelta

from django.conf import settings
from django.db import models

from webapp.experiments.models.experiments import Experiment
from webapp.lib.long_work import LongWork
from webapp.live.event_publishing import publish


class CheckpointRecord(models.Model):
    """A saved checkpoint folder."""

    experiment = models.ForeignKey(Experiment, on_delete=models.CASCADE, related_name="checkpoints")
    attempt = models.ForeignKey("Attempt", null=True, on_delete=models.SET_NULL, related_name="+")
    """That saved it; null = it was not reported by its own attempt."""
    step = models.IntegerField()
    policy_version = models.IntegerField()
    path = models.CharField(max_length=400)
    size_bytes = models.BigIntegerField(default=0)
    is_best = models.BooleanField(default=False)
    success = models.FloatField(null=True)
    deleted_at = models.DateTimeField(null=True)
    copy_sha256 = models.CharField(max_length=64, blank=True)
    """Sum of the manifest of its newest copy in the place of copies; "" = there is none."""
    copied_at = models.DateTimeField(null=True)
    """Null again when it was reported anew since."""
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["step"]
        constraints = [models.UniqueConstraint(fields=["experiment", "path"], name="checkpoint_once")]

    def __str__(self) -> str:
        return self.path

    @property
    def copy_prefix(self) -> str:
        """Where its copy lies in the place of copies."""
        return f"checkpoints/{self.pk}"


class ExportStatus(models.TextChoices):
    QUEUED = "queued", "Queued"
    RUNNING = "running", "Running"
    FINISHED = "finished", "Finished"
    FAILED = "failed", "Failed"
    REMOVING = "removing", "Removing"
    """Its files are to be removed by the host that has them."""
    REMOVED = "removed", "Removed"

    def is_final(self) -> bool:
        return self in (self.FINISHED, self.FAILED, self.REMOVED)


S = ExportStatus
EXPORT_TRANSITIONS: dict[ExportStatus, set[ExportStatus]] = {
    S.QUEUED: {S.RUNNING, S.FAILED, S.REMOVED},
    S.RUNNING: {S.FINISHED, S.FAILED, S.QUEUED},
    S.FINISHED: {S.REMOVING},
    S.FAILED: {S.REMOVED},
    S.REMOVING: {S.REMOVED},
    S.REMOVED: set(),
}
"""RUNNING -> QUEUED is a lost gpu worker."""


class CheckpointExport(LongWork):
    """A checkpoint as a plain transformers folder, written by a gpu worker beside what it trains."""

    checkpoint = models.ForeignKey(CheckpointRecord, on_delete=models.CASCADE, related_name="exports")
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL)
    dtype = models.CharField(max_length=8)
    status = models.CharField(max_length=8, choices=S, default=S.QUEUED, db_index=True)
    worker_name = models.CharField(max_length=120, blank=True)
    host = models.CharField(max_length=120, blank=True)
    """Machine on whose disk it lies."""
    path = models.CharField(max_length=400, blank=True)
    done_bytes = models.BigIntegerField(default=0)
    total_bytes = models.BigIntegerField(default=0)
    """Of all files; 0 until the export has read the checkpoint's sizes."""
    copy_sha256 = models.CharField(max_length=64, blank=True)
    """As a checkpoint's."""

    TRANSITIONS = EXPORT_TRANSITIONS
    BEGINS = {S.QUEUED: S.RUNNING}
    AFTER_LOSS = {S.RUNNING: S.QUEUED}
    SILENT_AFTER = timedelta(seconds=20)

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return f"export {self.pk} of {self.checkpoint}"

    def publish(self) -> None:
        payload = {"export": self.pk, "checkpoint": self.checkpoint_id, "status": self.status}
        publish(f"experiment.{self.checkpoint.experiment_id}", "checkpoint.exported", payload)

    @property
    def copy_prefix(self) -> str:
        """Where its copy lies in the place of copies."""
        return f"exports/{self.pk}"

    @property
    def percent(self) -> float:
        return 100 * self.done_bytes / self.total_bytes if self.total_bytes else 0.0
