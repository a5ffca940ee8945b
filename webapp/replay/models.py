"""The replay buffer: successful trajectories, what people said of them, where they were used."""

from django.conf import settings
from django.db import models

from webapp.accounts.models import Team
from webapp.experiments.models import Experiment, TaskSet
from webapp.trajectories.models import Group, Trajectory


class Verdict(models.TextChoices):
    INBOX = "inbox", "Inbox"
    ACCEPTED = "accepted", "Accepted"
    GOLD = "gold", "Gold"
    REJECTED = "rejected", "Rejected"


USABLE_VERDICTS = (Verdict.ACCEPTED, Verdict.GOLD)


class ReplayEntry(models.Model):
    """A trajectory that may be injected once a person accepted it."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE)
    trajectory = models.OneToOneField(Trajectory, on_delete=models.CASCADE, related_name="replay_entry")
    family = models.CharField(max_length=40, blank=True)
    verdict = models.CharField(max_length=8, choices=Verdict, default=Verdict.INBOX)
    tags = models.JSONField(default=list)
    note = models.TextField(blank=True)
    labelled_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL)
    labelled_at = models.DateTimeField(null=True)
    num_uses = models.IntegerField(default=0)
    signature = models.CharField(max_length=64, blank=True)
    """Digest of the task and the actions on a coarse grid: equal ones are near duplicates."""
    num_still = models.IntegerField(default=0)
    """Longest run of turns on an unchanged screen."""
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        indexes = [
            models.Index(fields=["team", "verdict", "id"], name="entry_by_verdict"),
            models.Index(fields=["team", "family", "verdict"], name="entry_by_family"),
            models.Index(fields=["team", "signature", "id"], name="entry_by_signature"),
        ]

    def __str__(self) -> str:
        return f"entry {self.pk} ({self.verdict})"


class LabelEvent(models.Model):
    """Append-only: every verdict, tag or note, and every undo (a new event that reverts one)."""

    entry = models.ForeignKey(ReplayEntry, on_delete=models.CASCADE, related_name="label_events")
    by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL)
    before = models.JSONField()
    """{"verdict", "tags", "note"} before it."""
    after = models.JSONField()
    undoes = models.OneToOneField("self", null=True, on_delete=models.CASCADE, related_name="undone_by")
    batch = models.CharField(max_length=32, blank=True, db_index=True)
    """Same for all events of one bulk change, so that it is undone as a whole."""
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        indexes = [models.Index(fields=["by", "-id"], name="label_by_newest")]

    def __str__(self) -> str:
        return f"{self.before['verdict']} -> {self.after['verdict']}"


class ReplaySkipRecord(models.Model):
    """An experiment wanted an entry, but could not use it."""

    entry = models.ForeignKey(ReplayEntry, on_delete=models.CASCADE, related_name="skips")
    experiment = models.ForeignKey(Experiment, on_delete=models.CASCADE, related_name="replay_skips")
    reason = models.CharField(max_length=20)
    """`training.contracts.trainer_reports.SkipReason`."""
    message = models.TextField()
    num_times = models.IntegerField(default=1)
    at = models.DateTimeField(auto_now_add=True)
    """The last time."""

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["entry", "experiment", "reason"], name="skip_counted_once")
        ]

    def __str__(self) -> str:
        return f"entry {self.entry_id}: {self.reason}"


class ReplayUseRecord(models.Model):
    """One injection: which entry, into which group and step, how far off-policy it was."""

    entry = models.ForeignKey(ReplayEntry, on_delete=models.CASCADE, related_name="uses")
    experiment = models.ForeignKey(Experiment, on_delete=models.CASCADE, related_name="replay_uses")
    group = models.ForeignKey(Group, on_delete=models.CASCADE, related_name="replay_uses")
    replaced = models.ForeignKey(Trajectory, on_delete=models.CASCADE, related_name="+")
    step = models.IntegerField()
    policy_age = models.IntegerField(null=True)
    as_likelihood = models.BooleanField(default=False)
    advantage = models.FloatField()
    importance_ratio = models.FloatField(null=True)
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["entry", "group", "step"], name="use_reported_once")]

    def __str__(self) -> str:
        return f"entry {self.entry_id} in step {self.step}"


class ImportStatus(models.TextChoices):
    QUEUED = "queued", "Queued"
    CHECKING = "checking", "Checking"
    CHECKED = "checked", "Checked"
    """A person decides whether what is new gets stored."""
    APPROVED = "approved", "Approved"
    STORING = "storing", "Storing"
    FINISHED = "finished", "Finished"
    CANCELLED = "cancelled", "Cancelled"
    FAILED = "failed", "Failed"

    def is_final(self) -> bool:
        return self in (self.FINISHED, self.CANCELLED, self.FAILED)


S = ImportStatus
IMPORT_TRANSITIONS: dict[ImportStatus, set[ImportStatus]] = {
    S.QUEUED: {S.CHECKING, S.CANCELLED, S.FAILED},
    S.CHECKING: {S.CHECKED, S.FINISHED, S.CANCELLED, S.FAILED},
    S.CHECKED: {S.APPROVED, S.CANCELLED},
    S.APPROVED: {S.STORING, S.CANCELLED, S.FAILED},
    S.STORING: {S.FINISHED, S.CANCELLED, S.FAILED},
    S.FINISHED: set(),
    S.CANCELLED: set(),
    S.FAILED: set(),
}
"""CHECKING -> FINISHED: nothing in it is new. A process that died leaves CHECKING or STORING behind; the next
one goes on from there."""


class ReplayImport(models.Model):
    """A file on its way into the buffer: read once to tell what is in it, and again to store what is new."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="replay_imports")
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL)
    task_set = models.ForeignKey(TaskSet, null=True, on_delete=models.SET_NULL)
    """The one that the file's task ids belong to."""
    file_name = models.CharField(max_length=200)
    path = models.CharField(max_length=120, blank=True)
    """Storage name; "" once the file is gone."""
    size_bytes = models.BigIntegerField()
    keep_labels = models.BooleanField(default=False)
    status = models.CharField(max_length=9, choices=S, default=S.QUEUED, db_index=True)
    claim = models.IntegerField(default=0)
    """Raised by every process that takes it: only the last one may write."""
    num_lost = models.IntegerField(default=0)
    """Processes that died with it."""
    heartbeat_at = models.DateTimeField(null=True)
    """null = no process holds it."""
    done_bytes = models.BigIntegerField(default=0)
    """Of the file, by the reading that is going on."""
    done_lines = models.IntegerField(default=0)
    num_new = models.IntegerField(default=0)
    num_known = models.IntegerField(default=0)
    num_bad = models.IntegerField(default=0)
    num_stored = models.IntegerField(default=0)
    known = models.JSONField(default=list)
    """The first [line, id of the entry that holds the same, 0 = an earlier line does]."""
    problems = models.JSONField(default=list)
    """The first [line, "field: what is wrong"]."""
    message = models.TextField(blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-id"]
        indexes = [models.Index(fields=["team", "-id"], name="import_team_newest")]

    def __str__(self) -> str:
        return f"import {self.pk} of {self.file_name}"

    @property
    def percent(self) -> float:
        return 100 * self.done_bytes / self.size_bytes if self.size_bytes else 0.0
