"""What credit by turn saves: success by step and by what the desktops spent, against plain GRPO.

Continuations of branches count with every turn that they do again. A desktop-second is longer on a busy
machine, a turn is not: both are given. Between two evaluations success is taken as a straight line.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from benchmarks.training.ablation_runs import pooled
from training.statistics.student_t import mean_interval

BAR = 0.8
"""Of held-out success, sampled."""
PLAIN = "grpo"
UNITS = ("steps", "seconds", "turns")
"""What an arm may be quicker in; the last two are of desktops."""
HEADER = (
    "arm",
    "seeds",
    "success at the end",
    "80 % after steps",
    "desktop-seconds",
    "desktop turns",
    "against grpo",
)
Run = dict[str, Any]
Curve = list[tuple[float, float]]


def spent(run: Run, unit: str) -> dict[int, float]:
    """Step -> what everything up to its end took."""
    if unit == "steps":
        return {step: float(step) for step in range(run["step"] + 1)}
    of_step: dict[int, float] = defaultdict(float)
    for row in run["desktops"]:
        of_step[row["step"]] += row[unit]
    sums = {0: 0.0}
    for step in range(1, run["step"] + 1):
        sums[step] = sums[step - 1] + of_step[step]
    return sums


def curve(run: Run, unit: str) -> Curve:
    """Held-out success, sampled, by what was spent until then."""
    until = spent(run, unit)
    return [(until[step], success) for step, success in run["sampled_curve"]]


def reached(points: Curve, bar: float = BAR) -> float | None:
    """What was spent when success first came to the bar; None when it never did."""
    before = points[0]
    for point in points:
        if point[1] >= bar:
            share = (bar - before[1]) / (point[1] - before[1]) if point[1] > before[1] else 1.0
            return before[0] + max(0.0, share) * (point[0] - before[0])
        before = point
    return None


def mean_until(points: Curve, end: float) -> float:
    """Mean success from the start until `end` was spent: who learns sooner has more of it."""
    area = 0.0
    for (left, low), (right, high) in zip(points, points[1:], strict=False):
        until = min(right, end)
        if until > left:
            at_end = low + (high - low) * (until - left) / (right - left)
            area += (until - left) * (low + at_end) / 2
    return area / end


def arm_of(name: str, runs: Sequence[Run]) -> dict[str, Any]:
    """All seeds of an arm, by themselves and against plain GRPO; runs of all arms are given."""
    own = [run for run in runs if run["arm"] == name]
    return {
        "arm": name,
        "runs": len(own),
        **pooled(own, "after"),
        "after_greedy": pooled(own, "after_greedy"),
        "reached": {unit: {run["seed"]: reached(curve(run, unit)) for run in own} for unit in UNITS},
        "spent": {unit: {run["seed"]: spent(run, unit)[run["step"]] for run in own} for unit in UNITS},
        "continuations": sum(
            row["trajectories"] for run in own for row in run["desktops"] if row["purpose"] == "branch"
        ),
        "rollouts": {
            run["seed"]: statistics.fmean(value for _, value in run["rollout_curve"]) for run in own
        },
        "against": {unit: difference(name, runs, unit) for unit in UNITS},
    }


def difference(name: str, runs: Sequence[Run], unit: str) -> dict[str, Any] | None:
    """Mean success until the same was spent, less plain GRPO's of the same seed; None for GRPO itself."""
    of = {(run["arm"], run["seed"]): run for run in runs}
    pairs = [
        (run, of[PLAIN, run["seed"]]) for run in runs if run["arm"] == name and (PLAIN, run["seed"]) in of
    ]
    if name == PLAIN or not pairs:
        return None
    found = {}
    for run, plain in pairs:
        curves = curve(run, unit), curve(plain, unit)
        end = min(points[-1][0] for points in curves)
        own, other = (mean_until(points, end) for points in curves)
        found[run["seed"]] = own - other
    return paired(found)


def paired(values: dict[int, float]) -> dict[str, Any]:
    """Mean of a difference by seed, with Student's interval."""
    low, high = mean_interval(list(values.values())) if len(values) > 1 else (None, None)
    return {"by_seed": values, "mean": statistics.fmean(values.values()), "low": low, "high": high}


def is_quicker(arm: dict[str, Any], plain: dict[str, Any]) -> bool:
    """Whether it came to the bar after fewer steps and fewer desktop-seconds in every seed."""
    return all(
        found is not None and (plain["reached"][unit][seed] is None or found < plain["reached"][unit][seed])
        for unit in ("steps", "seconds")
        for seed, found in arm["reached"][unit].items()
    )


def row_of(arm: dict[str, Any]) -> tuple[object, ...]:
    """Of the table."""
    sums = (", ".join(_number(value) for value in arm["reached"][unit].values()) for unit in UNITS)
    against = arm["against"]["seconds"]
    words = f"{against['mean']:+.1%}" if against else "-"
    if against and against["low"] is not None:
        words += f" [{against['low']:+.1%}, {against['high']:+.1%}]"
    share = f"{arm['success']:.0%} [{arm['low']:.0%}, {arm['high']:.0%}] n={arm['num_samples']}"
    return (arm["arm"], arm["runs"], share, *sums, words)


def _number(value: float | None) -> str:
    return "never" if value is None else f"{value:.0f}"
