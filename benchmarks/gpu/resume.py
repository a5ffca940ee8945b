"""Kill tests: whoever dies, the run goes on, and its losses are those of the run that nobody disturbed.

    python -m benchmarks.gpu.resume [--cpu] [--runs NAME ...]

Every run trains the same recorded groups: the trajectories are drawn once, by the first server, and each step
of each run gets the same ones, so that losses depend on the trainer's state alone and not on what an engine
happens to draw. Everything else is as in an experiment: weights are synced after every step and the canary is
compared, checkpoints are written in the background, and a killed trainer is started again with the same
command, as the gpu worker does.

undisturbed      what the others' losses are compared with, step by step
trainer          a trainer process killed between two checkpoints
before-commit    killed before a weight sync was committed
in-broadcast     killed in the middle of a broadcast
checkpoint       killed while a checkpoint is being written
engine           an SGLang server killed
colocated        nobody dies: trainer and engine share a GPU, which the engine leaves for every optimiser step
                 and takes back for the sync (by handles) and for a turn that it draws for every group
colocated-pair   the same with two trainer processes and a tensor-parallel server on the same two GPUs

On GPUs: SGLang on the last visible one, weights over NCCL, several runs beside each other. With --cpu: two
gloo processes, a tiny model, and the tests' stand-in for the SGLang server, which is a process of its own
with SGLang's HTTP calls.

Bar: every run ends by itself and no loss is further from the undisturbed run's than the tolerance; the canary
agrees after every sync.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.gpu.resume_lanes import (
    CPU,
    GPU,
    LANES,
    Lane,
    Scale,
    Stage,
    go_through,
    make_model_folder,
    say,
)
from benchmarks.gpu.resume_runs import EVERY, STEPS
from benchmarks.report import finish, print_table

RESULTS = Path(__file__).resolve().parents[1] / "results"
MAX_DRIFT = {True: 1e-4, False: 0.02}
"""On a CPU, on a GPU; nats."""
SAVED = f"grpo-{EVERY:06d}"
MUST_RESUME = {"trainer": SAVED, "before-commit": SAVED, "in-broadcast": SAVED}
"""Run -> the checkpoint that it goes on from."""
NAMES = tuple(name for lane in LANES for name in lane.runs)


def main() -> int:
    options = parse()
    scale = CPU if options.cpu else GPU
    results = Path(options.results) if options.results else RESULTS if options.cpu else RESULTS / "gpu"
    with tempfile.TemporaryDirectory(prefix="resume-") as scratch:
        runs = run_all(options, scale, Path(scratch))
    for run in runs:
        run["worst"] = worst_difference(runs[0], run)
    rows = [row_of(run) for run in runs]
    print_table(["run", "starts", "killed", "steps", "worst loss", "drift", "by disk", "seconds"], rows)
    problems = [words for run in runs for words in problems_of(run, scale)]
    for words in problems:
        print(f"MISSED: {words}")
    figures = {
        "tolerance": scale.tolerance,
        "compared": "loss/total of every step with the undisturbed run's; all train the same recorded groups",
        "processes": scale.processes,
        "engine": "SGLang stand-in on a CPU" if options.cpu else "SGLang",
        "gpus": gpu_names(),
        "runs": runs,
        "missed": problems,
        "command": " ".join(["python -m benchmarks.gpu.resume", *sys.argv[1:]]),
    }
    return finish("resume", figures, passed=not problems, results=results)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cpu", action="store_true", help="a tiny model, gloo and the stand-in for SGLang")
    parser.add_argument("--results", default="")
    parser.add_argument("--limit", type=float, default=1800, help="seconds for everything")
    parser.add_argument("--runs", nargs="+", default=list(NAMES), choices=NAMES, help="and undisturbed")
    return parser.parse_args()


def run_all(options: argparse.Namespace, scale: Scale, folder: Path) -> list[dict[str, Any]]:
    """All wanted runs, lane by lane on a CPU, all lanes at once on GPUs."""
    stage = Stage(
        scale=scale,
        folder=folder,
        model=make_model_folder(folder, is_cpu=options.cpu),
        wanted=("undisturbed", *options.runs),
        deadline=time.monotonic() + options.limit,
        recorded=Future(),
    )
    lanes = [lane for lane in LANES if any(name in stage.wanted for name in lane.runs)]
    say(f"lanes: {', '.join(lane.name for lane in lanes)}")

    def go(lane: Lane) -> list[dict[str, Any]]:
        return go_through(lane, stage)

    with ThreadPoolExecutor(1 if options.cpu else len(lanes)) as threads:
        return [run for found in threads.map(go, lanes) for run in found]


def worst_difference(baseline: dict[str, Any], run: dict[str, Any]) -> float:
    """Largest distance of a loss to the undisturbed run's at the same step; inf when steps are missing."""
    losses = baseline["losses"]
    if not losses or run["losses"].keys() != losses.keys():
        return float("inf")
    return max(abs(run["losses"][step] - losses[step]) for step in losses)


def problems_of(run: dict[str, Any], scale: Scale) -> list[str]:
    name = run["run"]
    if "error" in run:
        return [f"{name}: {run['error'][-200:]}"]
    found = []
    if not run["worst"] <= scale.tolerance:
        found.append(f"{name}: a loss is {run['worst']:.2e} away, the tolerance is {scale.tolerance:.0e}")
    if len(run["losses"]) != STEPS:
        found.append(f"{name}: {len(run['losses'])} of {STEPS} steps")
    if not run["drift_max"] <= MAX_DRIFT[scale.is_cpu]:
        found.append(f"{name}: drift {run['drift_max']:.3f}")
    if name in MUST_RESUME and not any(MUST_RESUME[name] in folder for folder in run["resumed_from"]):
        found.append(f"{name}: resumed from {run['resumed_from']}")
    if run["fell_back"] and name != "engine" and not is_stand_in_pair(name, scale):
        found.append(f"{name}: {run['fell_back']:.0f} syncs went by disk")
    if name.startswith("colocated"):
        found += [f"{name}: {words}" for words in rest_problems(run)]
    elif name != "undisturbed" and not run["killed"]:
        found.append(f"{name}: nothing was killed")
    return found


def rest_problems(run: dict[str, Any]) -> list[str]:
    """What is wrong with how a colocated engine slept, woke up and drew."""
    found = []
    commands = [rest["command"] for rest in run["rests"]]
    if commands != ["sleep", "wake"] * STEPS:
        found.append(f"the engine slept and woke {len(commands)} times in {STEPS} steps: {commands}")
    if set(run["drawn_by"]) != set(range(STEPS)):
        found.append(f"the engine drew with versions {sorted(set(run['drawn_by']))}")
    return found


def is_stand_in_pair(name: str, scale: Scale) -> bool:
    """The tests' stand-in has one process: it refuses the handles of two, and the disk is tried instead."""
    return name == "colocated-pair" and scale.is_cpu


def row_of(run: dict[str, Any]) -> list[str]:
    if "error" in run:
        return [run["run"], str(run["starts"]), "-", "-", "-", "-", "-", run["error"][:40]]
    return [
        run["run"],
        str(run["starts"]),
        ",".join(run["killed"]) or "-",
        str(len(run["losses"])),
        f"{run['worst']:.1e}",
        f"{run['drift_max']:.1e}",
        str(int(run["fell_back"])),
        f"{run['seconds']:.0f}",
    ]


def gpu_names() -> str:
    import torch

    if not torch.cuda.is_available():
        return "none"
    return f"{torch.cuda.device_count()}x {torch.cuda.get_device_name(0)}"


if __name__ == "__main__":
    sys.exit(main())
