"""Learning controls: does only the true reward teach First desk, from the same start with the same budget?

Each arm once per seed on real desktops, with as many trajectories: GRPO; rewards shuffled within the group;
random rewards; rejection fine-tuning (SFT on the run's own successes, no policy gradient). Shuffled and
random rewards at GRPO's rate destroy the policy, so `shuffled_slow` is the neutral control: a tenth of the
rate, and a KL term to the start.
docs/images/learning_controls.svg shows the result file's runs.
--side-by-side N makes N runs at once, each in an installation of its own on its share of the cores.

Bar: >= 60 steps; in every seed both controls end greedily at most 8 points above their start, GRPO more; the
neutral one ends at most 5 points from its start, greedily and sampled.

    python -m benchmarks.training.learning_controls
    [--arms grpo shuffled random shuffled_slow rejection_fine_tuning] [--seeds 0 1 2] [--steps 60]
    [--every 20] [--side-by-side 1] [--resume] [--no-picture | --picture-only]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from functools import partial
from typing import Any

from benchmarks.finished_runs import FinishedRuns, add_resume
from benchmarks.gpu.smoldesk_figures import looks_of, passes_at
from benchmarks.report import RESULTS, print_table
from benchmarks.training.learning_curves_picture import draw
from benchmarks.training.side_by_side import side_by_side
from testing.experiment_runs import (
    curve_of,
    evaluation,
    follow,
    launch,
    outcomes,
    settings,
    stage_seconds,
)
from testing.private_installation import Instance, InstanceFailed
from webapp.lib.supervisor.process_specs import SLOTS_PER_CORE

NAME = "learning_controls"
ARMS: dict[str, dict[str, object]] = {
    "grpo": {},
    "shuffled": {"algorithm.reward_control": "shuffled"},
    "random": {"algorithm.reward_control": "random"},
    "shuffled_slow": {
        "algorithm.reward_control": "shuffled",
        "optimiser.learning_rate": 6e-5,
        "algorithm.kl_coefficient": 0.1,
        "algorithm.reference_path": "first-desk",
    },
    "rejection_fine_tuning": {"algorithm.name": "rejection_fine_tuning"},
}
"""Name -> what differs from the preset."""
CONTROLS, NEUTRAL = ("shuffled", "random"), "shuffled_slow"
MIN_STEPS, MAX_RISE, MAX_MOVE, DRAWS = 60, 0.08, 0.05, 8
SERIES = ("rollout/success", "rollout/num_trajectories")
EMPTY: dict[str, Any] = {
    "step": 0,
    "passed": False,
    **dict.fromkeys(f"{how}_{when}" for how in ("greedy", "sampled") for when in ("before", "after")),
}
"""Of a run that failed."""
HEADER = ("arm", "seed", "status", "steps", "greedy before", "after", "sampled before", "after", "bar")


def main() -> int:
    options = parse()
    budget = {"steps": options.steps, "every": options.every, "samples_per_task": DRAWS}
    if options.picture_only:
        draw(json.loads((RESULTS / f"{NAME}.json").read_text())["figures"]["runs"], NAME)
        return 0
    runs = FinishedRuns(name=NAME, budget=budget, resume=options.resume)
    rows = measure_all(runs, options)
    print_table(HEADER, [row_of(row) for row in rows])
    is_whole = options.steps >= MIN_STEPS and {row["arm"] for row in rows} >= set(ARMS)
    status = runs.finish(passed=is_whole and all(row["passed"] for row in rows))
    if not options.no_picture:
        draw(runs.runs, NAME)
    return status


def measure_all(runs: FinishedRuns, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Every arm with every seed, a whole set of arms before the next seed, should time run out."""

    def work(key: tuple[str, int], num_cores: int) -> dict[str, Any]:
        arm, seed = key
        return runs.once({"arm": arm, "seed": seed}, partial(measure, arm, seed, options, num_cores))

    keys = [(arm, seed) for seed in options.seeds for arm in options.arms]
    return side_by_side(keys, work, options.side_by_side)


def parse() -> argparse.Namespace:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--arms", nargs="+", choices=list(ARMS), default=list(ARMS))
    arguments.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    arguments.add_argument("--steps", type=int, default=MIN_STEPS)
    arguments.add_argument("--every", type=int, default=20, help="steps between evaluations; 0 = ends only")
    arguments.add_argument("--limit-s", type=float, default=7200.0, help="of one run")
    arguments.add_argument("--side-by-side", type=int, default=1, help="runs at once, on shares of the cores")
    add_resume(arguments)
    picture = arguments.add_mutually_exclusive_group()
    picture.add_argument("--picture-only", action="store_true", help="of the result file")
    picture.add_argument("--no-picture", action="store_true", help="where no Chromium is")
    return arguments.parse_args()


def measure(arm: str, seed: int, options: argparse.Namespace, num_cores: int) -> dict[str, Any]:
    """One run of the preset under an arm, on a CPU; a failure is a status, not an exception."""
    slots = SLOTS_PER_CORE * num_cores
    try:
        with Instance(without=["web"], slots=slots, env={"CUDA_VISIBLE_DEVICES": ""}) as deskhand:
            described = train(deskhand, arm, seed, options)
    except (InstanceFailed, subprocess.SubprocessError) as error:
        return {"status": "failed", "message": str(error)[-2000:], "num_cores": num_cores} | EMPTY
    return figures_of(arm, described) | {"num_cores": num_cores}


def train(deskhand: Instance, arm: str, seed: int, options: argparse.Namespace) -> dict[str, Any]:
    """The experiment once it has ended."""
    values: dict[str, object] = {
        "algorithm.num_steps": options.steps,
        "optimiser.seed": seed,
        "evaluation.samples_per_task": DRAWS,
        "evaluation.every": options.every,
        **ARMS[arm],
    }
    number = launch(deskhand, "--preset", "first-desk", *settings(values))
    say = partial(print, f"{arm}, seed {seed}:", flush=True)
    described = follow(deskhand, number, options.limit_s, *SERIES, poll_s=10.0, say=say)
    return described | {"looks": looks_of(outcomes(deskhand, number))}


def figures_of(arm: str, described: dict[str, Any]) -> dict[str, Any]:
    """What the result file keeps of a run."""
    row: dict[str, Any] = {
        "status": described["status"],
        "message": described["message"],
        "step": described["step"],
        "stage_s": stage_seconds(described),
        "num_trajectories": sum(count for _, count in described["metrics"]["rollout/num_trajectories"]),
        "rollout_curve": described["metrics"]["rollout/success"],
        "sampled_curve": curve_of(described),
        "greedy_curve": curve_of(described, greedy=True),
    }
    for name in ("before", "after"):
        row[f"sampled_{name}"] = evaluation(described, name)
        row[f"greedy_{name}"] = evaluation(described, name, greedy=True)
        sampled = row[f"sampled_{name}"]
        row[f"passes_{name}"] = passes_at(described["looks"], sampled["step"]) if sampled else {}
    return row | {"passed": passes(arm, row)}


def passes(arm: str, row: dict[str, Any]) -> bool:
    """A control must not learn; the bars of GRPO are first_desk's, here it must only do better than that."""
    if row["greedy_before"] is None or row["greedy_after"] is None:
        return False
    rise = row["greedy_after"]["success"] - row["greedy_before"]["success"]
    if arm == NEUTRAL:
        moved = row["sampled_after"]["success"] - row["sampled_before"]["success"]
        return max(abs(rise), abs(moved)) <= MAX_MOVE
    return rise <= MAX_RISE if arm in CONTROLS else arm != "grpo" or rise > MAX_RISE


def row_of(row: dict[str, Any]) -> tuple[object, ...]:
    """One table row."""
    shares = [
        f"{found['success']:.0%}" if found else "-"
        for found in (row[f"{how}_{when}"] for how in ("greedy", "sampled") for when in ("before", "after"))
    ]
    bar = "met" if row["passed"] else "MISSED"
    return (row["arm"], row["seed"], row["status"], row["step"], *shares, bar)


if __name__ == "__main__":
    sys.exit(main())
