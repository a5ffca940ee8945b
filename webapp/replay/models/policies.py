"""Rules by which entries enter training, and the buffer as it was at one moment."""

from django.conf import settings
from django.db import models

from webapp.accounts.models import Team
from webapp.accounts.named_versions import TeamVersion
from webapp.lib.columns.stored_fields import ReportedJSONField
from webapp.replay.models.entries import ReplayEntry, Verdict


class AdmissionPolicy(TeamVersion):
    """One version of a team's rules."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="admission_policies")
    rules = ReportedJSONField()
    """`curation.rules.Rules` as JSON."""

    class Meta(TeamVersion.Meta):
        constraints = [
            models.UniqueConstraint(fields=TeamVersion.VERSION_ONCE, name="admission_policy_version_once")
        ]


class BufferSnapshot(models.Model):
    """The entries that a policy let in at one moment, with labels and edits as they were; never changed."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="buffer_snapshots")
    name = models.CharField(max_length=60)
    policy = models.ForeignKey(AdmissionPolicy, on_delete=models.PROTECT, related_name="snapshots")
    num_entries = models.IntegerField()
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return f"snapshot {self.pk} ({self.name})"


class SnapshotEntry(models.Model):
    """One entry of a snapshot; it goes when its entry is deleted."""

    snapshot = models.ForeignKey(BufferSnapshot, on_delete=models.CASCADE, related_name="members")
    entry = models.ForeignKey(ReplayEntry, on_delete=models.CASCADE, related_name="snapshots")
    verdict = models.CharField(max_length=8, choices=Verdict)
    edit = ReportedJSONField(default=dict)
    bad_turns = ReportedJSONField(default=list)
    """Indexes of the turns without a loss."""

    class Meta:
        constraints = [models.UniqueConstraint(fields=["snapshot", "entry"], name="entry_once_per_snapshot")]

    def __str__(self) -> str:
        return f"entry {self.entry_id} of snapshot {self.snapshot_id}"
