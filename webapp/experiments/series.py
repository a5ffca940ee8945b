"""Metric series for the charts: which panels there are, at most 1000 points each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from webapp.experiments.checkpoint_rows import all_evaluations, is_on_demand
from webapp.experiments.models import Experiment

MAX_POINTS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One chart. A name that ends with "/" takes every series of that area."""

    title: str
    names: tuple[str, ...]
    unit: str = ""
    kind: str = "line"
    """ "share" fixes the axis to 0..1; "log" is logarithmic."""
    limit_of: str = ""
    """Knob whose value is drawn as the alarm's limit."""


PANELS = (
    Panel(title="Success and reward", names=("rollout/success", "rollout/reward_mean"), kind="success"),
    Panel(title="Success by family", names=("success/",), kind="share"),
    Panel(
        title="Groups without variance",
        names=("rollout/zero_variance_fraction",),
        kind="share",
        limit_of="alarms.zero_variance_fraction",
    ),
    Panel(title="Reward terms", names=("reward/",)),
    Panel(title="Loss", names=("loss/total", "loss/policy", "loss/kl", "loss/likelihood")),
    Panel(title="Entropy", names=("loss/entropy",), unit="nats"),
    Panel(title="Gradient norm", names=("optimiser/grad_norm",), kind="log"),
    Panel(title="Importance ratio", names=("policy/importance_ratio_mean",)),
    Panel(title="Clipped tokens", names=("policy/clip_fraction",), kind="share"),
    Panel(
        title="Engine and trainer drift",
        names=("sync/drift", "policy/logprob_gap"),
        unit="nats",
        limit_of="alarms.logprob_drift",
    ),
    Panel(
        title="Parse errors, truncated, errored",
        names=("rollout/parse_error_rate", "rollout/truncation_rate", "rollout/errored_rate"),
        kind="share",
    ),
    Panel(title="Turns and tokens", names=("rollout/turns_mean", "rollout/completion_tokens_mean")),
    Panel(title="Seconds per step", names=("time/",)),
    Panel(title="Replay", names=("replay/injected",)),
    Panel(
        title="Staleness",
        names=("async/staleness_mean", "async/staleness_max", "async/dropped"),
        unit="policy versions",
        limit_of="algorithm.max_staleness",
    ),
    Panel(title="Waiting per step", names=("async/trainer_wait_s", "async/engine_idle_s"), unit="s"),
    Panel(title="SFT loss", names=("sft/loss", "sft/entropy"), unit="nats"),
    Panel(title="SFT held-out success", names=("sft/success",), kind="share"),
)


def panels_of(experiment: Experiment) -> list[dict[str, Any]]:
    """The panels with the alarm limits of this experiment's config."""
    found = []
    for panel in PANELS:
        section, _, name = panel.limit_of.partition(".")
        limit = (experiment.config.get(section) or {}).get(name) if section else None
        found.append({**asdict(panel), "limit": limit})
    return found


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
            "num_tasks": found.num_tasks,
            "num_success": found.num_success,
        }
        for found in all_evaluations(experiment)
    ]
