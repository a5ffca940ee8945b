"""What attempts measured: metrics, evaluations, alarms, incidents."""

from django.db import models

from webapp.experiments.models.experiments import Experiment


class MetricPoint(models.Model):
    """One value of one series. A resumed attempt overwrites the steps that it repeats."""

    experiment = models.ForeignKey(Experiment, on_delete=models.CASCADE, related_name="metrics")
    name = models.CharField(max_length=60)
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


class Evaluation(models.Model):
    """Success over held-out tasks at one policy version."""

    experiment = models.ForeignKey(Experiment, on_delete=models.CASCADE, related_name="evaluations")
    name = models.CharField(max_length=24)
    step = models.IntegerField()
    policy_version = models.IntegerField()
    split = models.CharField(max_length=8)
    num_tasks = models.IntegerField()
    num_success = models.IntegerField()
    success = models.FloatField()
    low = models.FloatField()
    high = models.FloatField()
    per_family = models.JSONField(default=dict)
    temperature = models.FloatField(null=True)
    """Sampling temperature, 0 = greedy; null for those from before it was recorded."""
    checkpoint = models.ForeignKey(
        "experiments.CheckpointRecord", null=True, on_delete=models.SET_NULL, related_name="evaluations"
    )
    """Of an evaluation on demand: what was evaluated. It belongs to another experiment."""
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["id"]
        constraints = [models.UniqueConstraint(fields=["experiment", "name", "step"], name="evaluation_once")]

    def __str__(self) -> str:
        return f"{self.name}: {self.num_success}/{self.num_tasks}"


class AlarmRecord(models.Model):
    """A guard that fired."""

    experiment = models.ForeignKey(Experiment, on_delete=models.CASCADE, related_name="alarms")
    name = models.CharField(max_length=40)
    severity = models.CharField(max_length=8)
    step = models.IntegerField()
    value = models.FloatField()
    limit = models.FloatField()
    message = models.TextField()
    remedy = models.TextField()
    num_times = models.IntegerField(default=1)
    """Repeats raise this and move `step`; the first row stays the only one per name."""
    at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["experiment", "name"], name="alarm_once")]

    def __str__(self) -> str:
        return self.name


class Incident(models.Model):
    """Something that happened to the experiment, told on its page: crash, resume, lost worker."""

    experiment = models.ForeignKey(Experiment, on_delete=models.CASCADE, related_name="incidents")
    kind = models.CharField(max_length=32)
    message = models.TextField()
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return self.message
