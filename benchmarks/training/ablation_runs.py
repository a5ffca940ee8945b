"""One run of the ablation: an arm, a seed, a budget, on some of the cores."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

from benchmarks.training.ablation_arms import UPDATES, Arm
from testing.experiment_runs import curve_of, evaluation, follow, launch, settings, stage_seconds
from testing.private_installation import Instance, InstanceFailed
from testing.watch_installation import rows
from training.rollouts.held_out_success import wilson_interval

CURVES = (
    "rollout/solved",
    "rollout/solved_at_limit",
    "rollout/parse_error_rate",
    "rollout/truncation_rate",
    "loss/entropy",
    "optimiser/grad_norm",
)
"""Kept whole, by step."""
SERIES = (
    "rollout/success",
    "time/step_s",
    "replay/failed_groups",
    "replay/injected",
    "async/staleness_mean",
    "policy/correction_cut_fraction",
    *CURVES,
)
SLOTS_PER_CORE = 3
SPENT = """
SELECT g.step, g.purpose, COUNT(*),
       SUM((SELECT COUNT(*) FROM trajectories_turnrecord turn WHERE turn.trajectory_id = t.id)),
       SUM((JULIANDAY(t.ended_at) - JULIANDAY(t.started_at)) * 86400)
FROM trajectories_trajectory t JOIN trajectories_group g ON g.id = t.group_id
WHERE g.purpose IN ('train', 'branch') GROUP BY g.step, g.purpose ORDER BY g.step, g.purpose
"""


@dataclass(frozen=True)
class Budget:
    """What every arm may use."""

    steps: int
    groups: int
    """Of 8 trajectories, per step."""
    tasks: int
    """Held-out, before and after."""
    limit_s: float
    """Per run, without the installation's start."""


def run_once(arm: Arm, seed: int, budget: Budget, cores: list[int]) -> dict[str, Any]:
    """Start an installation, train, and return the figures; a failure is a status, not an exception."""
    os.sched_setaffinity(0, cores)  # of this thread, inherited by everything that it starts
    slots = max(2, min(16, SLOTS_PER_CORE * len(cores)))
    # The same arithmetic everywhere: models of this size train on a CPU.
    env, workers = {"CUDA_VISIBLE_DEVICES": ""}, max(1, len(cores) // 4)
    # Rollouts and optimiser steps take turns: with few cores each may use them all.
    env["DESKHAND_TORCH_THREADS"] = str(max(len(cores) // 2, min(2, len(cores))))
    try:
        with Instance(without=["web"], slots=slots, env_workers=workers, env=env) as deskhand:
            return _run(deskhand, arm, seed, budget, slots)
    except (InstanceFailed, subprocess.SubprocessError) as error:
        return {"status": "failed", "message": str(error)[-2000:]} | EMPTY


EVALUATIONS = ("before", "after", "before_greedy", "after_greedy")
EMPTY: dict[str, Any] = {"step": 0, "step_s": None, **dict.fromkeys(EVALUATIONS)}


def _run(deskhand: Instance, arm: Arm, seed: int, budget: Budget, slots: int) -> dict[str, Any]:
    values = {
        "optimiser.seed": seed,
        "algorithm.num_steps": budget.steps,
        "algorithm.groups_per_step": budget.groups,
        "evaluation.num_tasks": budget.tasks,
        "desktops.num_desktops": slots,
        "desktops.trajectory_timeout_s": 300.0,  # many desktops on few cores
        "checkpoints.every": max(5, budget.steps),
        **arm,
    }
    if (updates := values.get(UPDATES)) is not None:  # a group is never split
        values[UPDATES] = min(int(str(updates)), budget.groups)
    accepted = 0
    if arm.get("replay.enabled"):
        accepted = accept_demonstrations(deskhand, seed, budget.steps * budget.groups, budget.limit_s / 2)
    number = launch(deskhand, "--preset", "first-desk", *settings(values))
    described = follow(deskhand, number, budget.limit_s, *SERIES, poll_s=8.0, say=lambda line: None)
    metrics = described["metrics"]
    steps = [value for _, value in metrics["time/step_s"]]
    return {
        "status": described["status"],
        "message": described["message"],
        "step": described["step"],
        "before": evaluation(described, "before"),
        "after": evaluation(described, "after"),
        "before_greedy": evaluation(described, "before", greedy=True),
        "after_greedy": evaluation(described, "after", greedy=True),
        "step_s": sum(steps) / len(steps) if steps else None,
        "stage_s": stage_seconds(described),
        "accepted": accepted,
        "failed_groups": sum(value for _, value in metrics["replay/failed_groups"]),
        "injected": sum(value for _, value in metrics["replay/injected"]),
        "rollout_curve": metrics["rollout/success"],
        "greedy_curve": curve_of(described, greedy=True),
        "sampled_curve": curve_of(described),
        "desktops": desktops_of(deskhand),
        "staleness": [value for _, value in metrics["async/staleness_mean"]],
        "cut_fraction": [value for _, value in metrics["policy/correction_cut_fraction"]],
        "curves": {name: metrics[name] for name in CURVES},
        "alarms": [alarm["name"] for alarm in described["alarms"]],
    }


def desktops_of(deskhand: Instance) -> list[dict[str, Any]]:
    """What the rollouts of each step took, and their continuations, which do the turns before them again."""
    names = ("step", "purpose", "trajectories", "turns", "seconds")
    return [dict(zip(names, row, strict=True)) for row in rows(deskhand, SPENT)]


def accept_demonstrations(deskhand: Instance, seed: int, count: int, limit_s: float) -> int:
    """Record the oracle on the tasks that the run will practise and accept what succeeds; how many."""
    command = [
        sys.executable,
        "-m",
        "benchmarks.training.ablation_replay",
        str(seed),
        str(count),
        str(limit_s),
    ]
    done = subprocess.run(
        command, env=deskhand.environment, capture_output=True, text=True, timeout=limit_s + 120, check=False
    )
    if done.returncode:
        raise InstanceFailed(f"recording for the replay buffer failed:\n{done.stderr[-2000:]}")
    return int(done.stdout.split()[-1])


def pooled(runs: list[dict[str, Any]], name: str) -> dict[str, Any]:
    """Success of the evaluation `name`, all runs together, each draw one trial."""
    wins = sum(run[name]["num_success"] for run in runs)
    trials = sum(run[name]["num_samples"] for run in runs)
    low, high = wilson_interval(wins, trials)
    return {"success": wins / trials if trials else 0.0, "low": low, "high": high, "num_samples": trials}
