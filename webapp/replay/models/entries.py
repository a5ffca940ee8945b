"""The replay buffer: successful trajectories, what people said of them, where they were used."""

from django.conf import settings
from django.db import models

from webapp.accounts.models import Team
from webapp.experiments.models import Experiment
from webapp.lib.columns.stored_fields import ReportedJSONField, ReportedTextField
from webapp.trajectories.models import Group, Trajectory


class Verdict(models.TextChoices):
    INBOX = "inbox", "Inbox"
    ACCEPTED = "accepted", "Accepted"
    GOLD = "gold", "Gold"
    REJECTED = "rejected", "Rejected"


USABLE_VERDICTS = (Verdict.ACCEPTED, Verdict.GOLD)


def stream_of(team_id: int) -> str:
    """Name of the event stream of a team's inbox."""
    return f"inbox.{team_id}"


class ReplayEntry(models.Model):
    """A trajectory, or a part of one, that may be injected once a person accepted it."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE)
    trajectory = models.ForeignKey(Trajectory, on_delete=models.CASCADE, related_name="replay_entries")
    part = models.IntegerField(default=0)
    """Turn at which it was split off from another entry of its trajectory; 0 = was not split off."""
    family = models.CharField(max_length=40, blank=True)
    verdict = models.CharField(max_length=8, choices=Verdict, default=Verdict.INBOX)
    tags = ReportedJSONField(default=list)
    note = ReportedTextField(blank=True)
    edit = ReportedJSONField(default=dict)
    """What of it is trained on (`turns.turn_edits`); {} = all, as recorded."""
    labelled_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL)
    labelled_at = models.DateTimeField(null=True)
    num_uses = models.IntegerField(default=0)
    signature = models.CharField(max_length=64, blank=True)
    """Digest of the task and the actions on a coarse grid: equal ones are near duplicates."""
    num_still = models.IntegerField(default=0)
    """Longest run of turns on an unchanged screen."""
    has_bad_turns = models.BooleanField(default=False)
    """Turns that it trains on were unparsable or refused: it is accepted trimmed only."""
    outline = ReportedJSONField(null=True)
    """Its actions as [kind, x, y, words], repeats merged (`curation.likeness`); null = not compared yet."""
    screens = models.CharField(max_length=64, blank=True)
    """Perceptual hashes of four of its screens; "" without screens."""
    cluster = models.BigIntegerField(null=True)
    """Id of the entry that near-identical ones gather around; null = not compared yet."""
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["trajectory", "part"], name="entry_once_per_part")]
        indexes = [
            models.Index(fields=["team", "verdict", "has_bad_turns", "-id"], name="entry_good_first"),
            models.Index(fields=["team", "family", "verdict"], name="entry_by_family"),
            models.Index(fields=["team", "signature", "id"], name="entry_by_signature"),
            models.Index(fields=["team", "cluster", "verdict"], name="entry_by_cluster"),
            models.Index(fields=["id"], condition=models.Q(cluster=None), name="entry_to_compare"),
        ]

    def __str__(self) -> str:
        return f"entry {self.pk} ({self.verdict})"


class LabelEvent(models.Model):
    """Append-only: every verdict, tag, note or edit, and every undo (a new event that reverts one)."""

    entry = models.ForeignKey(ReplayEntry, on_delete=models.CASCADE, related_name="label_events")
    by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL)
    before = ReportedJSONField()
    """{"verdict", "tags", "note", "edit"} before it; old ones know no edit."""
    after = ReportedJSONField()
    """The same behind it; of a split also "part", the id of the entry that was split off."""
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
    message = ReportedTextField()
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
    replaced = models.ForeignKey(Trajectory, on_delete=models.CASCADE, related_name="+", null=True)
    """None = it was imitated beside the group."""
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


class ImportedLine(models.Model):
    """What the line of an imported entry held beside its screens, to leave as it came."""

    entry = models.OneToOneField(ReplayEntry, on_delete=models.CASCADE, related_name="imported_line")
    messages = ReportedJSONField()
    """With the assistant's own words and the accessibility text; without pictures."""
    images = ReportedJSONField(default=list)
    """sha256 of its frames in their order."""
    metadata = ReportedJSONField(default=dict)
    fields = ReportedJSONField(default=dict)
    """Its other keys."""

    def __str__(self) -> str:
        return f"line of entry {self.entry_id}"
