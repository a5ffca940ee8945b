"""Scanners, scans and what they found. Scores stand in trajectories; nothing here changes them."""

from datetime import timedelta

from django.conf import settings
from django.db import models

from webapp.accounts.models import Team
from webapp.accounts.named_versions import TeamVersion
from webapp.lib.columns.stored_fields import ReportedCharField, ReportedJSONField
from webapp.lib.long_work import LongWork
from webapp.live.event_publishing import publish
from webapp.trajectories.models import Trajectory


class Scanner(TeamVersion):
    """One version of a question; shipped ones get their row at their first scan."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="scanners")
    definition = ReportedJSONField()
    """`definitions.Definition` as JSON."""

    class Meta(TeamVersion.Meta):
        constraints = [models.UniqueConstraint(fields=TeamVersion.VERSION_ONCE, name="scanner_version_once")]


class ScanStatus(models.TextChoices):
    QUEUED = "queued", "Queued"
    SCANNING = "scanning", "Scanning"
    WATCHING = "watching", "Watching"
    """A live one that has read everything so far."""
    FINISHED = "finished", "Finished"
    CANCELLED = "cancelled", "Cancelled"
    FAILED = "failed", "Failed"

    def is_final(self) -> bool:
        return self in (self.FINISHED, self.CANCELLED, self.FAILED)


S = ScanStatus
SCAN_TRANSITIONS: dict[ScanStatus, set[ScanStatus]] = {
    S.QUEUED: {S.SCANNING, S.CANCELLED, S.FAILED},
    S.SCANNING: {S.SCANNING, S.WATCHING, S.FINISHED, S.CANCELLED, S.FAILED},
    S.WATCHING: {S.SCANNING, S.CANCELLED, S.FAILED},
    S.FINISHED: set(),
    S.CANCELLED: set(),
    S.FAILED: set(),
}
"""SCANNING -> SCANNING: another process goes on after one that died."""


class Scan(LongWork):
    """A scanner over a slice of trajectories; a live one goes on with what ends later."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="scans")
    scanner = models.ForeignKey(Scanner, on_delete=models.CASCADE, related_name="scans")
    slice = models.CharField(max_length=60)
    """As the reward lab names slices: buffer, train-12, ..."""
    is_live = models.BooleanField(default=False)
    max_read = models.IntegerField()
    """Trajectories, and so calls of a model, that were agreed to."""
    status = models.CharField(max_length=9, choices=S, default=S.QUEUED, db_index=True)
    looked_at = models.DateTimeField(null=True)
    """When a live one last looked for trajectories that have ended."""
    num_expected = models.IntegerField(default=0)
    """Trajectories that were there when it was started."""
    num_read = models.IntegerField(default=0)
    num_found = models.IntegerField(default=0)
    num_unclear = models.IntegerField(default=0)
    num_prompt_tokens = models.BigIntegerField(default=0)
    num_completion_tokens = models.BigIntegerField(default=0)
    """As the model's server counted them."""
    cost = models.FloatField(default=0.0)
    """By the prices of the definition."""
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL)

    TRANSITIONS = SCAN_TRANSITIONS
    BEGINS = {S.QUEUED: S.SCANNING, S.WATCHING: S.SCANNING}
    SILENT_AFTER = timedelta(seconds=600)
    """A batch of slow calls, each tried four times, takes minutes."""

    class Meta:
        ordering = ["-id"]
        indexes = [models.Index(fields=["team", "-id"], name="scan_team_newest")]

    def __str__(self) -> str:
        return f"scan {self.pk}"

    def publish(self) -> None:
        publish(f"scan.{self.pk}", "scan.changed", {"status": self.status, "num_read": self.num_read})

    @property
    def percent(self) -> float:
        return min(100.0, 100 * self.num_read / self.num_expected) if self.num_expected else 0.0


class Outcome(models.TextChoices):
    FOUND = "found", "Found"
    CLEAR = "clear", "Clear"
    UNCLEAR = "unclear", "Unclear"
    """The model's answer could not be read."""


class Finding(models.Model):
    """What a scanner said of one trajectory; CLEAR rows say that it looked."""

    scanner = models.ForeignKey(Scanner, on_delete=models.CASCADE, related_name="findings")
    trajectory = models.ForeignKey(Trajectory, on_delete=models.CASCADE, related_name="findings")
    scan = models.ForeignKey(Scan, null=True, on_delete=models.SET_NULL, related_name="findings")
    outcome = models.CharField(max_length=7, choices=Outcome)
    turn = models.IntegerField(null=True)
    """Index of the turn that shows it; null = none in particular."""
    note = ReportedCharField(max_length=500, blank=True)

    class Meta:
        ordering = ["id"]
        constraints = [models.UniqueConstraint(fields=["scanner", "trajectory"], name="finding_once")]
        indexes = [models.Index(fields=["scanner", "outcome", "trajectory"], name="finding_by_outcome")]

    def __str__(self) -> str:
        return f"{self.outcome} in trajectory {self.trajectory_id}"
