"""Figures of active experiments, by their number, and of the GPUs."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from django.db.models import OuterRef, Q, QuerySet, Subquery
from django.utils import timezone
from prometheus_client.core import Metric

from webapp.experiments.models import ACTIVE_STATUSES, Attempt, Experiment, GpuSample, MetricPoint
from webapp.experiments.placement.pool import CPU
from webapp.experiments.placement.pool_state import gpu_workers, is_placed, workers_in_pool
from webapp.operations.metrics.families import Rows, gauge

HOUR = timedelta(hours=1)
LATELY = timedelta(minutes=1)
SERIES = {
    "time/step_s": ("step_seconds", "Duration of the last step."),
    "rollout/reward_mean": ("reward_mean", "Mean reward of the last step."),
    "rollout/success": ("success_ratio", "Share of the last step's trajectories that solved their task."),
    "rollout/solved": ("solved_ratio", "Share of them that the agent ended, and not a limit."),
}
"""Series of an experiment -> the figure that its last value becomes."""


def training_metrics() -> Iterator[Metric]:
    """Five queries."""
    yield from _steps()
    yield from _gpu_use()
    yield from _gpus()


def _steps() -> Iterator[Metric]:
    rows = Experiment.objects.filter(status__in=ACTIVE_STATUSES).order_by()
    found = list(rows.annotate(**{figure: _last(name) for name, (figure, _) in SERIES.items()}))
    steps = {(str(row.pk),): float(row.step) for row in found}
    yield gauge("experiment_step", "Step that an active experiment is at.", steps, "experiment")
    for figure, text in SERIES.values():
        values = {(str(row.pk),): getattr(row, figure) for row in found}
        known = {key: value for key, value in values.items() if value is not None}
        yield gauge(f"experiment_{figure}", text, known, "experiment")


def _last(name: str) -> Subquery:
    points: QuerySet[MetricPoint] = MetricPoint.objects.filter(experiment=OuterRef("pk"), name=name)
    return Subquery(points.order_by("-step").values("value")[:1])


def _gpu_use() -> Iterator[Metric]:
    samples = GpuSample.objects.filter(
        experiment__status__in=ACTIVE_STATUSES, at__gt=timezone.now() - LATELY
    ).order_by("at")
    use: dict[tuple[str, ...], float] = {}
    memory: dict[tuple[str, ...], float] = {}
    for experiment, gpus in samples.values_list("experiment_id", "gpus"):
        for gpu in gpus:
            key = str(experiment), str(gpu["index"])
            use[key], memory[key] = gpu["utilisation"], gpu["memory_bytes"]
    labels = "experiment", "gpu"
    yield gauge("gpu_utilisation_ratio", "How busy a GPU of an active experiment is.", use, *labels)
    yield gauge("gpu_memory_used_bytes", "Memory in use on it.", memory, *labels)


def _gpus() -> Iterator[Metric]:
    workers = workers_in_pool(gpu_workers())
    places = {place.key for worker in workers for place in worker.places if place.kind != CPU}
    placed = Experiment.objects.filter(is_placed()).values_list("placed_keys", flat=True)
    held = {key for keys in placed for key in keys} & places
    rows: Rows = {("held",): len(held), ("free",): len(places) - len(held)}
    yield gauge("gpus", "GPUs of the gpu workers, by whether an experiment holds them.", rows, "state")
    text = "Share of the last hour that the present GPUs were held by attempts."
    share: Rows = {(): _held_s() / (HOUR.total_seconds() * len(places))} if places else {}
    yield gauge("gpus_in_use_ratio_1h", text, share)


def _held_s() -> float:
    """Seconds of GPUs that attempts held in the last hour."""
    now = timezone.now()
    attempts = Attempt.objects.filter(Q(ended_at=None) | Q(ended_at__gt=now - HOUR), num_gpus__gt=0)
    rows = attempts.values_list("num_gpus", "started_at", "ended_at")
    return sum((number or 0) * _overlap_s(started, ended, now) for number, started, ended in rows)


def _overlap_s(started: datetime, ended: datetime | None, now: datetime) -> float:
    return max(0.0, (min(ended or now, now) - max(started, now - HOUR)).total_seconds())
