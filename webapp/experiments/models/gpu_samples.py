"""How busy the GPUs of an experiment were."""

from django.db import models

from webapp.experiments.models.experiments import Experiment
from webapp.lib.columns.stored_fields import ReportedJSONField


class GpuSample(models.Model):
    """One look at the GPUs of the host on which an attempt runs."""

    experiment = models.ForeignKey(Experiment, on_delete=models.CASCADE, related_name="gpu_samples")
    attempt = models.IntegerField()
    at = models.DateTimeField()
    gpus = ReportedJSONField(default=list)
    """[{index, utilisation 0..1, memory_bytes}]"""
    processes = ReportedJSONField(default=list)
    """[{gpu, name, utilisation 0..1 | null, memory_bytes | null}]"""

    class Meta:
        indexes = [models.Index(fields=["experiment", "at"], name="gpu_sample_by_time")]

    def __str__(self) -> str:
        return f"{self.experiment_id} at {self.at:%H:%M:%S}"
