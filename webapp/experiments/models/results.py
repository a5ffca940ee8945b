"""What attempts measured: metrics, evaluations, alarms, incidents."""

from dataclasses import dataclass

from django.conf import settings as site
from django.db import models
from django.utils import timezone

from training.contracts.eye_test import EyeTest
from training.contracts.outcome import SuccessRule
from training.contracts.trainer_reports import LEAST_SCORED, is_complete
from webapp.experiments.guards import GuardInfo, guard_of
from webapp.experiments.models.experiments import Experiment
from webapp.lib.columns.stored_fields import ReportedCharField, ReportedJSONField, ReportedTextField


class MetricPoint(models.Model):
    """One value of one series. A resumed attempt overwrites the steps that it repeats."""

    experiment = models.ForeignKey(Experiment, on_delete=models.CASCADE, related_name="metrics")
    name = ReportedCharField(max_length=80)
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


@dataclass(frozen=True, slots=True)
class Proportion:
    """A share of trajectories with its 95 % interval."""

    won: int
    value: float
    low: float
    high: float


LEAST_PART = 0.001
"""Of a mean score that partial ones add: less is rounding."""
COMPLETE = models.Q(num_requested=None) | models.Q(num_samples__gte=LEAST_SCORED * models.F("num_requested"))
"""`Evaluation.is_complete` in SQL: may decide which weights or arms are better."""


class Evaluation(models.Model):
    """Success over held-out tasks at one policy version and one temperature."""

    experiment = models.ForeignKey(Experiment, on_delete=models.CASCADE, related_name="evaluations")
    name = ReportedCharField(max_length=24)
    step = models.IntegerField()
    policy_version = models.IntegerField()
    split = models.CharField(max_length=8)
    num_tasks = models.IntegerField()
    samples_per_task = models.IntegerField(default=1)
    num_requested = models.IntegerField(null=True)
    """Trajectories; null, as `num_errored`, for evaluations from before it was counted."""
    num_errored = models.IntegerField(null=True)
    """Of these, without a score."""
    num_samples = models.IntegerField()
    """Scored trajectories: what `num_success` is out of."""
    num_success = models.IntegerField()
    """By OSWorld's own rule: a full score, also where a limit ended the trajectory."""
    success = models.FloatField()
    low = models.FloatField()
    high = models.FloatField()
    num_solved_at_limit = models.IntegerField(null=True)
    """Of `num_success`; null, as all that follows, for evaluations from before it was counted."""
    num_truncated = models.IntegerField(null=True)
    num_turns = models.IntegerField(null=True)
    num_unparsable_turns = models.IntegerField(null=True)
    solved = models.FloatField(null=True)
    """Share that the agent solved and ended."""
    solved_low = models.FloatField(null=True)
    solved_high = models.FloatField(null=True)
    per_family = ReportedJSONField(default=dict)
    temperature = models.FloatField(null=True)
    """Sampling temperature, 0 = greedy; null for those from before it was recorded."""
    p_of_change = models.FloatField(null=True)
    """Of the paired test against the evaluation before the first step; null without one."""
    mean_score = models.FloatField(null=True)
    """Of the scored trajectories, where partial scores count in part; null where it was not kept."""
    p_of_score = models.FloatField(null=True)
    """As `p_of_change`, of mean scores; null where no score of either is partial."""
    checkpoint = models.ForeignKey(
        "experiments.CheckpointRecord", null=True, on_delete=models.SET_NULL, related_name="evaluations"
    )
    """Of an evaluation on demand: what was evaluated. It belongs to another experiment."""
    eyes = ReportedJSONField(null=True)
    """`EyeTest`: what measured it; null where none was made."""
    at = models.DateTimeField(auto_now_add=True)
    is_of_sft: bool
    """Measured within the SFT stage or of its checkpoint, whose steps it counts. Of `all_evaluations`."""

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(
                fields=["experiment", "name", "step", "temperature"], name="evaluation_once_per_temperature"
            )
        ]

    def __str__(self) -> str:
        return f"{self.name}: {self.num_success}/{self.num_samples}"

    @property
    def rule(self) -> SuccessRule:
        """By which its success is shown: that of the state only where the other was not counted."""
        return SuccessRule.STATE if self.solved is None else SuccessRule.ENDED

    def by(self, rule: SuccessRule) -> Proportion:
        """Its success by a rule; by that of the state where the other was not counted."""
        if rule is SuccessRule.STATE or self.solved is None:
            return Proportion(self.num_success, self.success, self.low, self.high)
        assert self.num_solved_at_limit is not None
        assert self.solved_low is not None
        assert self.solved_high is not None
        won = self.num_success - self.num_solved_at_limit
        return Proportion(won, self.solved, self.solved_low, self.solved_high)

    @property
    def shown(self) -> Proportion:
        return self.by(self.rule)

    @property
    def is_complete(self) -> bool:
        """Whether enough was scored to choose by; taken for granted where it was not counted."""
        return self.num_requested is None or is_complete(self.num_samples, self.num_requested)

    @property
    def missing_text(self) -> str:
        """What every page says beside its number when too much has no score: "65 of 72 without a score"."""
        return "" if self.is_complete else f"{self.num_errored} of {self.num_requested} without a score"

    @property
    def is_graded(self) -> bool:
        """Whether there are partial scores: they raise the mean above the share of full ones."""
        return self.mean_score is not None and self.mean_score > self.success + LEAST_PART

    @property
    def eye_test(self) -> EyeTest | None:
        return EyeTest.model_validate(self.eyes) if self.eyes else None

    @property
    def eyes_text(self) -> str:
        """The same in a line."""
        found = self.eye_test
        return found.text if found else "no eye test"

    @property
    def is_greedy(self) -> bool:
        return self.temperature == 0

    @property
    def truncated_share(self) -> float | None:
        """Of the scored trajectories, those that a limit ended."""
        return None if self.num_truncated is None else self.num_truncated / max(self.num_samples, 1)

    @property
    def unparsable_share(self) -> float | None:
        """Of the turns, those without a parsable action."""
        if self.num_turns is None or self.num_unparsable_turns is None:
            return None
        return self.num_unparsable_turns / max(self.num_turns, 1)

    @property
    def solved_by_family(self) -> dict[str, float]:
        """Share that the agent solved and ended; where no limit was counted, of the state alone."""
        counts = {name: (won, total, sum(cut)) for name, (won, total, *cut) in self.per_family.items()}
        return {name: (won - cut) / total for name, (won, total, cut) in counts.items() if total}

    @property
    def kind(self) -> str:
        """How its actions were chosen, in a word."""
        return "greedy" if self.is_greedy else "sampled"


class EvaluationTasks(models.Model):
    """How each task of an evaluation went; a row of its own, since lists of evaluations do not need it."""

    evaluation = models.OneToOneField(Evaluation, on_delete=models.CASCADE, related_name="tasks")
    results = ReportedJSONField()
    """task_id -> [solved, scored trajectories, id of the group, of the solved those at a limit]"""
    scores = ReportedJSONField(default=dict)
    """task_id -> mean score; empty for evaluations from before it was kept."""

    def __str__(self) -> str:
        return f"tasks of evaluation {self.evaluation_id}"


class AlarmStatus(models.TextChoices):
    ACTIVE = "active", "Active"
    ACKNOWLEDGED = "acknowledged", "Acknowledged"
    """It still fires, and a person knows."""
    CLEARED = "cleared", "Cleared"


ALARM_TRANSITIONS: dict[AlarmStatus, set[AlarmStatus]] = {
    AlarmStatus.ACTIVE: {AlarmStatus.ACKNOWLEDGED, AlarmStatus.CLEARED},
    AlarmStatus.ACKNOWLEDGED: {AlarmStatus.CLEARED},
    AlarmStatus.CLEARED: {AlarmStatus.ACTIVE},
}


class AlarmRecord(models.Model):
    """A guard that fired."""

    experiment = models.ForeignKey(Experiment, on_delete=models.CASCADE, related_name="alarms")
    name = models.CharField(max_length=40)
    status = models.CharField(max_length=12, choices=AlarmStatus.choices, default=AlarmStatus.ACTIVE)
    severity = models.CharField(max_length=8)
    step = models.IntegerField()
    """At which it fired last."""
    since_step = models.IntegerField(default=0)
    since_at = models.DateTimeField(default=timezone.now)
    until_step = models.IntegerField(null=True)
    until_at = models.DateTimeField(null=True)
    """Since when it is cleared."""
    acknowledged_by = models.ForeignKey(site.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL)
    value = models.FloatField()
    limit = models.FloatField()
    message = ReportedTextField()
    remedy = ReportedTextField()
    num_times = models.IntegerField(default=1)
    """Repeats raise this and move `step`; the first row stays the only one per name."""
    at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["experiment", "name"], name="alarm_once")]

    def __str__(self) -> str:
        return self.name

    @property
    def guard(self) -> GuardInfo:
        """What is known of the guard that fired."""
        return guard_of(self.name)

    @property
    def steps_text(self) -> str:
        """From its onset until it fired last."""
        return f"steps {self.since_step}–{self.step}" if self.step > self.since_step else f"step {self.step}"

    @property
    def stood_to_end(self) -> bool:
        """Of a run that has ended: whether it fired at the last step, too."""
        return self.status != AlarmStatus.CLEARED and self.step >= self.experiment.step


class Incident(models.Model):
    """Something that happened to the experiment, shown on its page: crash, resume, lost worker."""

    experiment = models.ForeignKey(Experiment, on_delete=models.CASCADE, related_name="incidents")
    kind = models.CharField(max_length=32)
    message = ReportedTextField()
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return self.message

    @property
    def title(self) -> str:
        """Its kind in words."""
        return self.kind.replace("_", " ").capitalize()
