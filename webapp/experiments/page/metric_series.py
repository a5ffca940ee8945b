"""What the charts show: series of at most MAX_POINTS points, and held-out evaluations."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from webapp.experiments.checkpoints.checkpoint_table import all_evaluations, is_on_demand
from webapp.experiments.models import Experiment

MAX_POINTS = 1000


def series_of(experiment: Experiment, from_step: int = 0) -> dict[str, dict[str, list[float]]]:
    """name -> {"x": steps, "y": values} of every series from a step on, thinned to MAX_POINTS."""
    points: dict[str, list[tuple[int, float]]] = defaultdict(list)
    rows = experiment.metrics.filter(step__gte=from_step).order_by("step")
    for name, step, value in rows.values_list("name", "step", "value").iterator():
        points[name].append((step, value))
    return {name: thinned(values) for name, values in points.items()}


def thinned(points: list[tuple[int, float]]) -> dict[str, list[float]]:
    """At most MAX_POINTS: means of equal buckets, at the bucket's last step."""
    width = -(-len(points) // MAX_POINTS)
    if width <= 1:
        return {"x": [step for step, _ in points], "y": [value for _, value in points]}
    buckets = [points[start : start + width] for start in range(0, len(points), width)]
    return {
        "x": [bucket[-1][0] for bucket in buckets],
        "y": [_mean(v for _, v in bucket) for bucket in buckets],
    }


def _mean(values: Iterable[float]) -> float:
    found = list(values)
    return sum(found) / len(found)


def evaluation_points(experiment: Experiment) -> list[dict[str, Any]]:
    """Held-out success with its 95 % interval, for the success chart; those on demand at their checkpoint."""
    return [
        {
            "name": "on demand" if is_on_demand(found, experiment) else found.name,
            "step": found.checkpoint.step if found.checkpoint else found.step,
            "success": found.success,
            "low": found.low,
            "high": found.high,
            "temperature": found.temperature,
            "num_tasks": found.num_tasks,
            "num_samples": found.num_samples,
            "num_success": found.num_success,
        }
        for found in all_evaluations(experiment)
    ]
