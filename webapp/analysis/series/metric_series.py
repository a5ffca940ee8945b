"""What the charts show: series of at most MAX_POINTS points that keep all peaks, and evaluations."""

from collections import defaultdict
from typing import Any

import numpy as np
from django.db import transaction
from django.db.models import Q

from webapp.experiments.models import Evaluation, Experiment
from webapp.experiments.queries.rows_behind_resume import lost_rows

MAX_POINTS = 600
ROLLED_BACK = "checkpoint/rolled_back"
"""Series with a point at every step after which the weights were rolled back."""
ROWS_AT_ONCE = 10_000
LAST_SHARE = 0.1
"""Part of a series, at its end, whose mean judges a run: one step is noise."""
Line = dict[str, list[float]]
"""{"x": steps, "y": values}"""
Series = dict[str, Line]
"""By name."""


def no_points() -> Line:
    return {"x": [], "y": []}


def series_of(experiment: Experiment, from_step: int = 0) -> Series:
    """Every series from a step on, in order of its steps, thinned to MAX_POINTS."""
    lines: Series = defaultdict(no_points)
    # As they lie in the database: by name or step, each would be looked up by itself.
    rows = experiment.metrics.filter(step__gte=from_step).filter(_living(experiment)).order_by("id")
    points = rows.values_list("name", "step", "value")
    # Outside of a transaction PostgreSQL copies the whole result before it sends the first row.
    with transaction.atomic(savepoint=False):
        for name, step, value in points.iterator(chunk_size=ROWS_AT_ONCE):
            line = lines[name]
            line["x"].append(step)
            line["y"].append(value)
    return {name: thinned(_in_order(lines[name])) for name in sorted(lines)}


def whole_series(experiment: Experiment, names: list[str]) -> Series:
    lines = {name: no_points() for name in names}
    rows = experiment.metrics.filter(name__in=names).filter(_living(experiment)).order_by("step")
    for name, step, value in rows.values_list("name", "step", "value"):
        lines[name]["x"].append(step)
        lines[name]["y"].append(value)
    return lines


def _living(experiment: Experiment) -> Q:
    """No steps that a lost attempt was ahead; SFT counts its own, and a roll-back happened all the same."""
    if not experiment.attempts.filter(number__gt=1).exists():
        return Q()
    return ~lost_rows() | Q(name__startswith="sft/") | Q(name=ROLLED_BACK)


def thinned(line: Line) -> Line:
    """At most MAX_POINTS of them, true ones: the first and the last, and of equal buckets the lowest and
    the highest, so that no peak is lost."""
    steps, values = line["x"], line["y"]
    if len(steps) <= MAX_POINTS:
        return line
    inner = np.array(values[1:-1])
    width = -(-len(inner) // (MAX_POINTS // 2 - 1))
    num_whole = len(inner) // width * width
    buckets, starts = inner[:num_whole].reshape(-1, width), np.arange(0, num_whole, width)
    places = [starts + buckets.argmin(axis=1), starts + buckets.argmax(axis=1)]
    if rest := inner[num_whole:].tolist():
        places.append(num_whole + np.array([rest.index(min(rest)), rest.index(max(rest))]))
    kept = [0, *(1 + np.unique(np.concatenate(places))).tolist(), len(steps) - 1]
    return {"x": [steps[place] for place in kept], "y": [values[place] for place in kept]}


def _in_order(line: Line) -> Line:
    """By step; an attempt that was resumed has written some of its steps later."""
    steps = np.array(line["x"])
    if (np.diff(steps) >= 0).all():
        return line
    order = steps.argsort(kind="stable").tolist()
    return {axis: [numbers[place] for place in order] for axis, numbers in line.items()}


def evaluation_points(evaluations: list[Evaluation]) -> list[dict[str, Any]]:
    """Held-out success with its 95 % interval, for the success chart; those on demand at their checkpoint.

    Those of the SFT stage are left out: they count its own steps, and have a chart of their own.
    """
    return [
        {
            "name": "on demand" if found.checkpoint else found.name,
            "step": found.checkpoint.step if found.checkpoint else found.step,
            "success": found.shown.value,
            "low": found.shown.low,
            "high": found.shown.high,
            "temperature": found.temperature,
            "num_tasks": found.num_tasks,
            "num_samples": found.num_samples,
            "num_success": found.shown.won,
            "num_at_limit": found.num_solved_at_limit,
            "mean_score": found.mean_score if found.is_graded else None,
            "missing": found.missing_text,
        }
        for found in evaluations
        if not found.is_of_sft
    ]
