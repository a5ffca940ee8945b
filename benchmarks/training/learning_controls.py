"""Learning controls: does only the true reward teach First desk, from the same start with the same budget?

GRPO, rewards shuffled within the group, and random rewards, each once per seed on real desktops.

Bar: >= 60 steps; in every seed both controls end greedily at most 8 points above their start.

    python -m benchmarks.training.learning_controls [--seeds 0 1 2] [--steps 60]
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

from benchmarks.report import finish, print_table
from testing.experiment_runs import evaluation, follow, launch, settings, stage_seconds
from testing.private_installation import Instance

CONTROLS = ("none", "shuffled", "random")
MIN_STEPS, MAX_RISE, DRAWS = 60, 0.08, 3
LIMIT_S = 3600.0
HEADER = ("rewards", "seed", "status", "steps", "greedy before", "after", "sampled before", "after", "bar")


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    arguments.add_argument("--steps", type=int, default=MIN_STEPS)
    options = arguments.parse_args()
    with Instance(without=["web"]) as deskhand:
        rows = [
            measure(deskhand, control, seed, options.steps) for seed in options.seeds for control in CONTROLS
        ]
    print_table(HEADER, [row_of(row) for row in rows])
    passed = options.steps >= MIN_STEPS and all(row["passed"] for row in rows)
    return finish("learning_controls", {"runs": rows}, passed=passed)


def measure(deskhand: Instance, control: str, seed: int, steps: int) -> dict[str, Any]:
    """One run of the preset under a control."""
    values: dict[str, object] = {
        "algorithm.reward_control": control,
        "algorithm.num_steps": steps,
        "optimiser.seed": seed,
        "evaluation.samples_per_task": DRAWS,
    }
    number = launch(deskhand, "--preset", "first-desk", *settings(values))
    described = follow(deskhand, number, LIMIT_S, "rollout/success", poll_s=10.0, say=lambda line: None)
    row: dict[str, Any] = {
        "control": control,
        "seed": seed,
        "status": described["status"],
        "step": described["step"],
        "stage_s": stage_seconds(described),
        "curve": described["metrics"]["rollout/success"],
    }
    for name in ("before", "after"):
        row[f"sampled_{name}"] = evaluation(described, name)
        row[f"greedy_{name}"] = evaluation(described, name, greedy=True)
    return row | {"passed": passes(row)}


def passes(row: dict[str, Any]) -> bool:
    """A control must not learn; GRPO's own bar is first_desk's, here it must only do better than that."""
    if row["greedy_before"] is None or row["greedy_after"] is None:
        return False
    rise = row["greedy_after"]["success"] - row["greedy_before"]["success"]
    return rise > MAX_RISE if row["control"] == "none" else rise <= MAX_RISE


def row_of(row: dict[str, Any]) -> tuple[object, ...]:
    """One table row."""
    shares = [
        f"{found['success']:.0%}" if found else "-"
        for found in (row[f"{how}_{when}"] for how in ("greedy", "sampled") for when in ("before", "after"))
    ]
    bar = "met" if row["passed"] else "MISSED"
    return (row["control"], row["seed"], row["status"], row["step"], *shares, bar)


if __name__ == "__main__":
    sys.exit(main())
