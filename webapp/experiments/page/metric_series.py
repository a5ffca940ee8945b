"""What the charts show: series of at most MAX_POINTS points that keep all peaks, and evaluations."""

from __future__ import annotations

from collections import defaultdict
from operator import itemgetter
from typing import Any

from webapp.experiments.checkpoints.checkpoint_table import is_on_demand
from webapp.experiments.models import Evaluation, Experiment

MAX_POINTS = 1000
ROWS_AT_ONCE = 10_000
Line = dict[str, list[float]]
"""{"x": steps, "y": values}"""
Series = dict[str, Line]
"""By name."""


def series_of(experiment: Experiment, from_step: int = 0) -> Series:
    """Every series from a step on, thinned to MAX_POINTS."""
    points: dict[str, list[tuple[int, float]]] = defaultdict(list)
    # As they lie in the database: by name or step, each would be looked up by itself.
    rows = experiment.metrics.filter(step__gte=from_step).order_by("id")
    for name, step, value in rows.values_list("name", "step", "value").iterator(chunk_size=ROWS_AT_ONCE):
        points[name].append((step, value))
    return {name: thinned(sorted(points[name], key=itemgetter(0))) for name in sorted(points)}


def whole_series(experiment: Experiment, names: list[str]) -> Series:
    """The series of these names, every point of them."""
    points: dict[str, list[tuple[int, float]]] = {name: [] for name in names}
    rows = experiment.metrics.filter(name__in=names).order_by("step")
    for name, step, value in rows.values_list("name", "step", "value"):
        points[name].append((step, value))
    return {name: _as_axes(values) for name, values in points.items()}


def thinned(points: list[tuple[int, float]]) -> Line:
    """At most MAX_POINTS of them, true ones: the first and the last, and of equal buckets the lowest and
    the highest, so that no peak is lost."""
    if len(points) <= MAX_POINTS:
        return _as_axes(points)
    inner = points[1:-1]
    width = -(-len(inner) // (MAX_POINTS // 2 - 1))
    kept = [points[0]]
    for start in range(0, len(inner), width):
        bucket = inner[start : start + width]
        kept += sorted({min(bucket, key=itemgetter(1)), max(bucket, key=itemgetter(1))})
    return _as_axes([*kept, points[-1]])


def _as_axes(points: list[tuple[int, float]]) -> Line:
    return {"x": [step for step, _ in points], "y": [value for _, value in points]}


def evaluation_points(evaluations: list[Evaluation], experiment: Experiment) -> list[dict[str, Any]]:
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
        for found in evaluations
    ]
