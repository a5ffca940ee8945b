"""The parts of the learning run: one GRPO arm per bound on staleness."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from testing.experiment_runs import evaluation, follow, launch, seconds, settings, stage_seconds
from testing.private_installation import Instance

FAMILIES = ["menu", "note", "colour"]
CURVE = ("rollout/success", "rollout/reward_mean", "loss/entropy", "time/step_s")
COSTS = (
    "time/step_s",
    "time/rollout_s",
    "time/train_s",
    "sync/seconds",
    "sync/drift",
    "policy/logprob_gap",
    "async/staleness_mean",
)
DRAWS = 3
"""Of each held-out task, sampled."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Sizes of the run."""

    engine: dict[str, object]
    """Knobs of the engine, e.g. {"engine.name": "sglang"}."""
    num_desktops: int
    eval_tasks: int
    grpo_steps: int
    groups_per_step: int
    evaluate_every: int
    """Steps between held-out evaluations of an arm."""
    learning_rate: float
    train_s: float
    """GRPO ends after so many seconds, its evaluations included; 0 = after `grpo_steps`."""
    arms_end_at: float
    """On the clock of `time.monotonic`."""
    seed: int = 0
    more: dict[str, object] = field(default_factory=dict)
    """Further knobs of every experiment."""

    def shared(self) -> dict[str, object]:
        """Knobs that the arms have in common."""
        return {
            "tasks.families": FAMILIES,
            "desktops.num_desktops": self.num_desktops,
            "evaluation.num_tasks": self.eval_tasks,
            "evaluation.samples_per_task": DRAWS,
            "optimiser.seed": self.seed,
            **self.engine,
            **self.more,
        }


def arm(
    deskhand: Instance, checkpoint: str, staleness: int, plan: Plan, say: Callable[[str], None]
) -> dict[str, Any]:
    """GRPO from `checkpoint` with this bound on staleness."""
    values = plan.shared() | {
        "model.path": checkpoint,
        "algorithm.num_steps": plan.grpo_steps,
        "algorithm.max_seconds": plan.train_s,
        "algorithm.groups_per_step": plan.groups_per_step,
        "algorithm.max_staleness": staleness,
        # The same in all arms: the decoupled objective. Its weight makes up for staleness, and for an engine
        # that computes in bfloat16; its clip needs a second update.
        "algorithm.old_logprobs": "recomputed",
        "algorithm.correction": "truncate",
        "algorithm.updates_per_batch": min(2, plan.groups_per_step),
        "optimiser.learning_rate": plan.learning_rate,
        # Two updates a step are more than First desk makes; falling, the rate ends them quietly.
        "optimiser.decay": "linear",
        "checkpoints.every": plan.evaluate_every,
        "evaluation.every": plan.evaluate_every,
    }
    number = launch(deskhand, "--preset", "first-desk", *settings(values))
    limit_s = max(0.0, plan.arms_end_at - time.monotonic())
    described = follow(deskhand, number, limit_s, *CURVE, *COSTS, say=say)
    last = described["checkpoints"][-1]["path"] if described["checkpoints"] else ""
    return outcome(described) | summary(described) | {"staleness": staleness, "checkpoint": last}


def outcome(described: dict[str, Any]) -> dict[str, Any]:
    """How an experiment ended and what it took."""
    return {
        "status": described["status"],
        "ran_out": described["ran_out"],
        "message": described["message"],
        "step": described["step"],
        "stage_s": stage_seconds(described),
        "incidents": described["incidents"],
        "alarms": [alarm["name"] for alarm in described["alarms"]],
    }


def summary(described: dict[str, Any]) -> dict[str, Any]:
    """Held-out success over the steps, and the median cost of a step."""
    metrics = described["metrics"]
    costs = {name: statistics.median(value for _, value in metrics[name]) for name in COSTS if metrics[name]}
    return {
        "before": evaluation(described, "before"),
        "after": evaluation(described, "after") or evaluation(described, "during"),
        "greedy_before": evaluation(described, "before", greedy=True),
        "greedy_after": evaluation(described, "after", greedy=True)
        or evaluation(described, "during", greedy=True),
        "held_out": held_out(described, greedy=False),
        "held_out_greedy": held_out(described, greedy=True),
        "costs": costs,
        "curve": {name: metrics[name] for name in CURVE},
        "grpo_s": sum(value for _, value in metrics["time/step_s"]),
    }


def held_out(described: dict[str, Any], *, greedy: bool) -> list[dict[str, Any]]:
    """Every evaluation of one kind, with the seconds at which it stood."""
    step_s = described["metrics"]["time/step_s"]
    keys = ("name", "step", "temperature", "success", "low", "high", "num_tasks", "num_samples", "per_family")
    return [
        {key: item[key] for key in keys}
        | {"at_s": since_start(described, item), "steps_s": steps_until(step_s, item["step"])}
        for item in described["evaluations"]
        if (item["temperature"] == 0) == greedy
    ]


def since_start(described: dict[str, Any], evaluated: dict[str, Any]) -> float:
    """Seconds of the GRPO stage when this evaluation had ended; 0 for the one before it."""
    (stage,) = [stage for stage in described["stages"] if stage["name"] == "grpo"] or [{"started_at": None}]
    return max(0.0, seconds(stage["started_at"], evaluated["at"]) or 0.0)


def steps_until(step_s: list[tuple[int, float]], step: int) -> float:
    """Seconds of the steps up to this one, without evaluations."""
    return sum(value for number, value in step_s if number <= step)


def why(deskhand: Instance, characters: int = 3000) -> str:
    """The ends of the logs of an installation whose experiment failed."""
    logs = sorted(deskhand.folder.rglob("*.log"), key=lambda path: path.stat().st_mtime)[-6:]
    return "\n".join(f"--- {path}\n{path.read_text(errors='replace')[-characters:]}" for path in logs)


def write(path: Path | None, figures: dict[str, Any]) -> None:
    """What is known so far, so that an interrupted run is no lost run."""
    if path:
        path.write_text(json.dumps(figures, indent=1, default=str))
