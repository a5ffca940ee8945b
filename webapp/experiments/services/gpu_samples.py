"""Looks at a host's GPUs while an experiment runs."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.utils import timezone

from webapp.experiments.models import Attempt, GpuSample
from webapp.lib.remote_calls import OwnAttempt, gpu_host

GPU_SAMPLES_KEPT = timedelta(days=14)
"""One every ten seconds makes 8640 a day."""


@dataclass(frozen=True, slots=True)
class GpuLook:
    """How busy a host's GPUs are, as `GpuSample` keeps it."""

    gpus: list[dict[str, Any]]
    processes: list[dict[str, Any]]


@gpu_host.request
def record_gpu_sample(attempt_id: OwnAttempt, look: GpuLook) -> None:
    """One look at the attempt's GPUs; pages ask for them by themselves."""
    attempt = Attempt.objects.get(pk=attempt_id)
    GpuSample.objects.create(
        experiment_id=attempt.experiment_id,
        attempt=attempt.number,
        at=timezone.now(),
        gpus=look.gpus,
        processes=look.processes,
    )


def prune_gpu_samples() -> int:
    """Forget old looks; returns how many."""
    return GpuSample.objects.filter(at__lt=timezone.now() - GPU_SAMPLES_KEPT).delete()[0]
