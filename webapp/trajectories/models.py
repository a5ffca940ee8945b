"""Groups, trajectories, turns and the frames that they show."""

from enum import StrEnum

from django.db import models
from django.db.models import Q

from training.contracts.config import DesktopConfig
from training.contracts.outcome import Outcome, outcome_of
from training.contracts.types import FINAL_STATUSES, Limit, Purpose, Source, TrajectoryStatus
from webapp.accounts.models import Team
from webapp.experiments.models import Experiment, TaskRecord
from webapp.experiments.stored_config import read_stored
from webapp.fleet.models import Desktop, Worker
from webapp.lib.columns.stored_fields import ReportedCharField, ReportedJSONField, ReportedTextField
from webapp.trajectories.turn_texts import TEXT_INDEXES, TurnTexts

EQUAL_REWARDS_STD = 1e-6
"""Below it the rewards of a group count as equal."""
RUNNING = (TrajectoryStatus.RESETTING, TrajectoryStatus.RUNNING, TrajectoryStatus.EVALUATING)
"""A worker has them."""


def _choices(enum: type) -> list[tuple[str, str]]:
    return [(member.value, member.value.capitalize()) for member in enum]  # type: ignore[attr-defined]


class Frame(models.Model):
    """A screenshot known by the sha256 of its lossless PNG, or a text of a turn, whose width is 0."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE)
    sha256 = models.CharField(max_length=64)
    width = models.IntegerField()
    height = models.IntegerField()
    num_bytes = models.IntegerField(null=True)
    """Of its files; null = not measured yet."""
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["team", "sha256"], name="frame_once_per_team")]
        indexes = [models.Index(fields=["sha256"], name="frame_by_sha256")]

    def __str__(self) -> str:
        return self.sha256[:12]


class GroupQuerySet(models.QuerySet["Group"]):
    """`Group.objects`, also as `experiment.groups`."""

    def without_variance(self) -> "GroupQuerySet":
        """Finished ones whose members were all rewarded alike; see `Group.has_no_variance`."""
        return self.filter(finished_at__isnull=False, num_scored__gt=1, reward_std__lt=EQUAL_REWARDS_STD)


class Group(models.Model):
    """Sibling trajectories of one task."""

    objects = GroupQuerySet.as_manager()
    team = models.ForeignKey(Team, on_delete=models.CASCADE)
    experiment = models.ForeignKey(Experiment, null=True, on_delete=models.CASCADE, related_name="groups")
    attempt = models.IntegerField(default=0)
    task = models.ForeignKey(TaskRecord, on_delete=models.PROTECT, related_name="groups")
    purpose = models.CharField(max_length=14, choices=_choices(Purpose))
    source = models.CharField(max_length=10, choices=_choices(Source), default=Source.POLICY)
    step = models.IntegerField(default=0)
    """Of a train group, the optimiser step that it is for, from 1; of an evaluation, the finished steps."""
    size = models.IntegerField()
    temperature = models.FloatField(default=1.0)
    desktops = ReportedJSONField(default=dict)
    """DesktopConfig of a group without an experiment, empty = all defaults; read it as `desktop_config`."""
    reads_texts = models.BooleanField(default=False)  # trees and terminals, where no experiment says so
    num_final = models.IntegerField(default=0)
    num_scored = models.IntegerField(default=0)
    reward_mean = models.FloatField(null=True)
    reward_std = models.FloatField(null=True)
    finished_seq = models.BigIntegerField(null=True, db_index=True)
    """Order of finishing, the coordinator's cursor; null while members run."""
    request_key = models.CharField(max_length=40, null=True, unique=True)
    """Of the request that made it: one that is sent again makes no second group."""
    is_cancelled = models.BooleanField(default=False)
    parent = models.ForeignKey(
        "Trajectory", null=True, on_delete=models.SET_NULL, related_name="branch_groups"
    )
    """Of a branch: from which it was continued, in the state of `snapshot`, or after the same actions."""
    branch_turn = models.IntegerField(null=True)  # turns before it are the parent's; null: no branch
    snapshot = models.ForeignKey("Snapshot", null=True, on_delete=models.SET_NULL, related_name="groups")
    created_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [models.Index(fields=["experiment", "-id"], name="group_experiment_newest")]

    def __str__(self) -> str:
        return f"group {self.pk}"

    @property
    def desktop_config(self) -> DesktopConfig:
        """Where its trajectories run: the experiment's desktops, or its own without one."""
        if self.experiment is not None:
            return self.experiment.settings.desktops
        return read_stored(DesktopConfig, self.desktops)

    @property
    def has_no_variance(self) -> bool:
        """True when all rewards are equal, and with them every advantage 0."""
        std = self.reward_std if self.finished_at is not None and self.num_scored > 1 else None
        return std is not None and std < EQUAL_REWARDS_STD


class Trajectory(models.Model):
    """The record of one episode. Columns that lists show or filter by are kept here."""

    # Without statistics SQLite would prefer a plain index on the team to every one that fits a filter.
    team = models.ForeignKey(Team, on_delete=models.CASCADE, db_index=False)
    experiment = models.ForeignKey(
        Experiment, null=True, on_delete=models.CASCADE, related_name="trajectories"
    )
    group = models.ForeignKey(Group, on_delete=models.CASCADE, related_name="trajectories")
    task = models.ForeignKey(TaskRecord, on_delete=models.PROTECT)
    family = models.CharField(max_length=40, blank=True)
    purpose = models.CharField(max_length=14, choices=_choices(Purpose))
    source = models.CharField(max_length=10, choices=_choices(Source))
    status = models.CharField(
        max_length=12, choices=_choices(TrajectoryStatus), default=TrajectoryStatus.QUEUED
    )
    member = models.IntegerField(default=0)
    """Place in its group, 0-based."""
    tries = models.IntegerField(default=0)
    """Re-runs of this place after errors; the errored rows stay and are shown."""
    retry_of = models.ForeignKey("self", null=True, on_delete=models.SET_NULL, related_name="retries")
    step = models.IntegerField(default=0)
    policy_version = models.IntegerField(null=True)
    fingerprint = ReportedCharField(max_length=300, null=True)
    """What made its token ids (`context_fingerprint`), once it ended; null = unknown, or nothing sampled."""
    host = models.CharField(max_length=120, blank=True)
    """Machine whose workers have to run it, since its snapshot lies there; "" = any."""
    keeps_snapshots = models.BooleanField(default=False)  # one before every turn from now on
    snapshot_problem = ReportedTextField(blank=True)
    """Why the last snapshot could not be kept; "" when it was."""
    worker = models.ForeignKey(Worker, null=True, on_delete=models.SET_NULL)
    desktop = models.ForeignKey(Desktop, null=True, on_delete=models.SET_NULL)
    sent_at = models.DateTimeField(null=True)
    """When its job was sent; null = waits in the database."""
    parked_at = models.DateTimeField(null=True)
    """Since when it waits for a desktop of a remote service."""
    retry_at = models.DateTimeField(null=True)
    """When a parked one is asked for again."""
    parking = ReportedJSONField(null=True)
    """What the lender said last: reason, position, wait_s; and how often it was asked."""
    heartbeat_at = models.DateTimeField(null=True)
    limit = models.CharField(max_length=10, choices=_choices(Limit), blank=True)
    """What truncated it; "" when nothing did."""
    num_turns = models.IntegerField(default=0)
    num_parse_errors = models.IntegerField(default=0)
    num_prompt_tokens = models.BigIntegerField(null=True)
    """Of all its turns, each with its whole context; null = not counted."""
    num_completion_tokens = models.BigIntegerField(null=True)
    score = models.FloatField(null=True)
    reward = models.FloatField(null=True)
    advantage = models.FloatField(null=True)
    logprob_gap = models.FloatField(null=True)
    terms = ReportedJSONField(default=list)
    checks = ReportedJSONField(default=list)
    milestones = ReportedJSONField(default=list)
    """`RewardTerm`s of its breakdown, what its evaluator looked at, and `ReachedMilestone`s, as JSON."""
    error = ReportedTextField(blank=True)
    error_kind = ReportedCharField(max_length=24, blank=True)
    last_frame = models.CharField(max_length=64, blank=True)
    """The newest screen seen."""
    final_frame = models.CharField(max_length=64, blank=True)
    """The screen after the last action, before evaluation; "" when none was taken."""
    mistake_turn = models.IntegerField(null=True)  # the first that lost decisively; null = none known
    thumbnail = models.CharField(max_length=64, blank=True)
    """The most telling screen, chosen at the end; "" until then."""
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    pruned_at = models.DateTimeField(null=True)
    """When its turns and screenshots went by a rule of its team; what it scored stays."""

    class Meta:
        indexes = [
            models.Index(fields=["team", "-id"], name="trajectory_team_newest"),
            models.Index(fields=["experiment", "-id"], name="trajectory_experiment_newest"),
            models.Index(fields=["team", "experiment", "-id"], name="trajectory_by_experiment"),
            models.Index(
                fields=["experiment", "-id"],
                condition=Q(fingerprint__isnull=False),
                name="trajectory_with_fingerprint",
            ),
            models.Index(fields=["team", "-id"], condition=Q(ended_at=None), name="trajectory_active"),
            models.Index(fields=["team", "source", "-id"], name="trajectory_by_source"),
            models.Index(fields=["team", "purpose", "-id"], name="trajectory_by_purpose"),
            models.Index(fields=["team", "num_parse_errors"], name="trajectory_by_parse_errors"),
            models.Index(fields=["team", "status", "-id"], name="trajectory_by_status"),
            models.Index(fields=["team", "family", "-id", "score"], name="trajectory_by_family"),
            models.Index(fields=["team", "-reward", "-id"], name="trajectory_by_reward"),
            models.Index(fields=["team", "-score", "-id", "family"], name="trajectory_by_score"),
            models.Index(fields=["team", "-advantage", "-id"], name="trajectory_by_advantage"),
            models.Index(fields=["status", "sent_at", "id"], name="trajectory_waiting"),
            models.Index(fields=["ended_at"], name="trajectory_ended"),
            models.Index(fields=["team", "ended_at"], name="trajectory_by_end"),
            models.Index(fields=["final_frame"], name="trajectory_by_final_frame"),
        ]

    def __str__(self) -> str:
        return f"trajectory {self.pk}"

    @property
    def desktop_config(self) -> DesktopConfig:
        """Where it runs: its experiment's desktops, or its group's without one."""
        return self.experiment.settings.desktops if self.experiment else self.group.desktop_config

    @property
    def is_final(self) -> bool:
        return TrajectoryStatus(self.status) in FINAL_STATUSES

    @property
    def outcome(self) -> Outcome | None:
        """How it came out; None while it runs, and for what has no score."""
        return outcome_of(TrajectoryStatus(self.status), self.score)

    @property
    def list_frame(self) -> str:
        """What lists show of it."""
        return self.thumbnail or self.last_frame


class TurnRecord(TurnTexts):
    """One turn; `completion` and `action` are `training.contracts.types` JSON."""

    trajectory = models.ForeignKey(Trajectory, on_delete=models.CASCADE, related_name="turns")
    index = models.IntegerField()
    source = models.CharField(max_length=10, choices=_choices(Source), default=Source.POLICY)
    frame = models.CharField(max_length=64, blank=True)
    """sha256 of the observation's PNG."""
    width = models.IntegerField(default=0)
    height = models.IntegerField(default=0)
    observation_text = ReportedTextField(blank=True)
    completion = ReportedJSONField(null=True)
    thought = ReportedTextField(blank=True)
    action = ReportedJSONField(null=True)
    earlier_actions = ReportedJSONField(null=True)  # of the same completion, done before `action`
    dialect = ReportedCharField(max_length=16, blank=True)
    parse_error = ReportedTextField(blank=True)
    action_error = ReportedTextField(blank=True)
    screen_changed = models.BooleanField(null=True)
    measured = ReportedJSONField(null=True)
    """What its action changed (`training.contracts.observed_text`); null = not measured."""
    unsettled = ReportedCharField(max_length=10, blank=True)  # as in `Turn`
    is_context = models.BooleanField(default=False)  # never imitated: its `step_loss_mask` was 0
    terms = ReportedJSONField(default=list)
    observed_at = models.DateTimeField()
    completed_at = models.DateTimeField(null=True)
    acted_at = models.DateTimeField(null=True)
    spent_ms = ReportedJSONField(null=True)
    """Where its time went (`training.contracts.turn_trace`); null = not measured."""

    class Meta:
        ordering = ["index"]
        constraints = [models.UniqueConstraint(fields=["trajectory", "index"], name="turn_once")]
        indexes = [models.Index(fields=["frame"], name="turn_by_frame"), *TEXT_INDEXES]

    def __str__(self) -> str:
        return f"turn {self.index} of {self.trajectory_id}"


class SnapshotStatus(StrEnum):
    """kept -> gone"""

    KEPT = "kept"
    GONE = "gone"
    """Its host dropped it for newer ones, or lost it."""


class Snapshot(models.Model):
    """The state of a trajectory's desktop before one of its turns, kept by the machine that it ran on."""

    trajectory = models.ForeignKey(Trajectory, on_delete=models.CASCADE, related_name="snapshots")
    turn = models.IntegerField()
    """The turn that has not been taken yet, 0-based."""
    host = models.CharField(max_length=120)
    name = models.CharField(max_length=40)
    """The desk host's own name for it."""
    status = models.CharField(max_length=4, choices=_choices(SnapshotStatus), default=SnapshotStatus.KEPT)
    size_mb = models.FloatField(default=0)
    pause_s = models.FloatField(default=0)
    """How long the desktop stood still for it."""
    took_s = models.FloatField(default=0)  # until the trajectory went on
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["turn"]
        constraints = [
            models.UniqueConstraint(fields=["trajectory", "turn"], name="snapshot_once"),
            models.UniqueConstraint(fields=["host", "name"], name="snapshot_name_of_host"),
        ]

    def __str__(self) -> str:
        return f"snapshot before turn {self.turn} of {self.trajectory_id}"
