"""A sweep as numbers for its two charts: curves with their spread over seeds, and parallel coordinates."""

import math
from collections.abc import Callable, Sequence
from statistics import fmean
from typing import Any

from webapp.analysis.series.metric_series import MAX_POINTS
from webapp.experiments.models import ArmStatus
from webapp.experiments.sweep_plan import Axis, SweepPlan
from webapp.sweeps.queries.results import ArmResult

MAX_CURVES = 7
"""Arms in the chart of curves; more colours cannot be distinguished."""

Place = Callable[[Any], float]
"""Value of an axis -> where it stands on it, 0 at the bottom, 1 at the top."""


def sweep_charts(plan: SweepPlan, results: Sequence[ArmResult]) -> dict[str, Any]:
    """What static/js/experiments/sweep_charts.js shows."""
    sign = -1 if plan.direction == "maximise" else 1
    known = [one for one in results if any(one.curves)]
    known.sort(key=lambda one: (_value(one) is None, sign * (_value(one) or 0.0), one.arm.number))
    return {
        "metric": plan.metric,
        "is_share": plan.is_share,
        "num_left_out": max(0, len(known) - MAX_CURVES),
        "curves": [_curve(one) for one in known[:MAX_CURVES]],
        **_parallel(plan, results),
    }


def _value(result: ArmResult) -> float | None:
    """What its line ends at: what it was judged by, else the newest mean of an arm that still runs."""
    if result.mean is not None:
        return result.mean
    curve = result.mean_curve
    return curve[max(curve)] if curve else None


def _curve(result: ArmResult) -> dict[str, Any]:
    """Steps with the mean, lowest and highest of the seeds that have reached them."""
    rows = list(result.by_step().items())
    rows = rows[:: -(-len(rows) // MAX_POINTS)] if rows else rows
    return {
        "name": f"Arm {result.arm.number}: {result.words}",
        "x": [step for step, _ in rows],
        "mean": [fmean(values) for _, values in rows],
        "low": [min(values) for _, values in rows],
        "high": [max(values) for _, values in rows],
        "num_seeds": [len(values) for _, values in rows],
    }


def _parallel(plan: SweepPlan, results: Sequence[ArmResult]) -> dict[str, Any]:
    """Axes with their ticks, and per arm a line over them; the last axis is what the arms are judged by."""
    judged = [(one, value) for one in results if (value := _value(one)) is not None]
    if not judged or not plan.axes:
        return {"axes": [], "lines": []}
    values = [value for _, value in judged]
    low, high = min(values), max(values)
    ends = _between(low, high)
    axes = [_axis(axis, results) for axis in plan.axes]
    sign = 1 if plan.direction == "maximise" else -1
    lines = [
        {
            "name": f"Arm {one.arm.number}: {one.words}",
            "y": [place(one.arm.values[axis.path]) for axis, (place, _) in zip(plan.axes, axes, strict=True)]
            + [ends(value)],
            "value": value,
            "good": ends(value) if sign > 0 else 1 - ends(value),
            "is_final": one.arm.status == ArmStatus.FINISHED,
        }
        for one, value in judged
    ]
    shown = [{"label": axis.path, "ticks": ticks} for axis, (_, ticks) in zip(plan.axes, axes, strict=True)]
    text = (lambda value: f"{100 * value:.0f} %") if plan.is_share else _text
    own = {
        "label": plan.metric,
        "ticks": [[ends(value), text(value)] for value in dict.fromkeys((low, high))],
    }
    return {"axes": [*shown, own], "lines": lines}


def _axis(axis: Axis, results: Sequence[ArmResult]) -> tuple[Place, list[list[Any]]]:
    """Where values stand on it, and its ticks as [place, text]."""
    if not axis.is_range:
        numbers = [value for value in axis.values if not isinstance(value, bool | str)]
        ordered: list[Any] = sorted(numbers) if len(numbers) == len(axis.values) else list(axis.values)
        last = max(1, len(ordered) - 1)
        places = {value: index / last if len(ordered) > 1 else 0.5 for index, value in enumerate(ordered)}
        return places.__getitem__, [[place, _text(value)] for value, place in places.items()]
    low, high = axis.ends
    scaled = math.log if axis.log else float
    between = _between(scaled(low), scaled(high))
    return lambda value: between(scaled(value)), [[0.0, _text(low)], [1.0, _text(high)]]


def _between(low: float, high: float) -> Callable[[float], float]:
    return lambda value: (value - low) / (high - low) if high > low else 0.5


def _text(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
