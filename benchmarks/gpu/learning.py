"""Learning on a GPU host: GRPO from First desk's start on real X11 desktops, in turns and asynchronously.

A private installation (real Redis, workers, desktops) trains the shipped start, or a folder given by --start
(a larger one is made by `training.content.recipes.first_desk.grow_checkpoint`), by GRPO twice: with rollouts
and optimiser steps in turns, and with staleness 2, both by the decoupled objective. The engine is SGLang;
when its server does not come up, the run goes on with the transformers engine and says so ("engine" in the
result). On one GPU trainer and server share it, and the server stays awake.

Bar, over >= 60 held-out tasks, greedy and three draws each: greedy <= 55 % and sampled >= 15 % before, greedy
>= 90 % after in every arm, sampled above its start; staleness 2 ends greedily at most 3 points below in
turns, and its steps take <= 80 % of the seconds. An arm whose time runs out ends with its last held-out
evaluation.

    python -m benchmarks.gpu.learning [--engine sglang|transformers] [--desktops 32] [--start FOLDER] [--tiny]
"""

from __future__ import annotations

import argparse
import math
import os
import shutil
import sys
import time
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from safetensors import safe_open

from benchmarks.finished_runs import load_and_speed
from benchmarks.gpu.learning_arms import Plan, arm, why, write
from benchmarks.report import RESULTS, commit, finish, print_table
from testing.learning_curves import side_by_side
from testing.private_installation import Instance
from training.planning.model_folders import find_folder
from workers.gpu.gpu_placement import visible_gpus

MAX_BEFORE, MIN_AFTER, MIN_TASKS = 0.55, 0.90, 60
MIN_SAMPLED = 0.15
"""Before: groups must differ."""
MAX_BEHIND, MAX_TIME = 0.03, 0.80
"""Staleness 2 against in turns: points of greedy success, share of the steps' seconds."""
STALENESS = (0, 2)
START = "first-desk"
SHIPPED = Path(__file__).resolve().parents[2] / "training" / "checkpoints_shipped"
ENGINES: dict[str, dict[str, object]] = {
    "transformers": {"engine.name": "transformers"},
    "sglang": {
        "engine.name": "sglang",
        # Of what is free at its start; the cap on tokens below keeps it to less than 1 GB.
        "engine.memory_fraction": 0.5,
        "engine.max_running": 96,
        # Heads of 16 and 32 are below what the binary kernels are made for.
        "engine.attention_backend": "triton",
        "engine.start_timeout_s": 240,
        "engine.dtype": "bfloat16",
        # Two layers need no graphs, and capturing them takes longer than the whole start.
        "engine.extra_arguments": [
            "--disable-cuda-graph",
            "--max-total-tokens=400000",
        ],
        # A server that does not come up is no reason to try it again for minutes.
        "checkpoints.max_restarts": 0,
    },
}
EVALUATIONS = ("greedy_before", "greedy_after", "before", "after")
HEADER = (
    *("arm", "status", "steps", "GRPO, s", "step, s", "rollout, s", "train, s"),
    *("greedy before", "after", "sampled before", "after", "bar"),
)


def main() -> int:
    options = parse()
    started = time.monotonic()
    plan = plan_of(options)
    figures: dict[str, Any] = {"asked_engine": options.engine, "start": str(options.start), "arms": []}
    figures |= {"gpus": gpu_names(), "versions": versions(), "commit": commit(), "cores": os.cpu_count()}
    figures["command"] = " ".join(["python -m benchmarks.gpu.learning", *sys.argv[1:]])
    figures |= {"desktops": options.desktops, "weights": num_weights(options.start)}
    figures["quiet"] = load_and_speed()
    figures["arms"] = all_arms(plan, options, Teller(started))
    figures["wall_s"] = time.monotonic() - started
    write(options.record, figures)
    return report(figures, tiny=options.tiny)


def parse() -> argparse.Namespace:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--engine", choices=sorted(ENGINES), default="sglang")
    arguments.add_argument("--weight-sync", choices=("auto", "disk", "nccl", "ipc"), default="auto")
    arguments.add_argument("--start", default=START, help="a shipped checkpoint, or a model's folder")
    arguments.add_argument("--desktops", type=int, default=32)
    arguments.add_argument("--env-workers", type=int, default=4)
    arguments.add_argument("--steps", type=int, default=70, help="of GRPO, per arm")
    arguments.add_argument("--train-s", type=float, default=0.0, help="of GRPO, per arm; 0 = all its steps")
    arguments.add_argument("--evaluate-every", type=int, default=20, help="steps, per arm")
    arguments.add_argument("--groups", type=int, default=12, help="of 8 trajectories per step")
    arguments.add_argument("--learning-rate", type=float, default=6e-4)
    arguments.add_argument("--tasks", type=int, default=72, help="held-out tasks of an evaluation")
    arguments.add_argument("--budget-s", type=float, default=520, help="all together; arms are cut short")
    arguments.add_argument("--save", type=Path, help="new folder for the arms' models")
    arguments.add_argument("--record", type=Path, help="file that gets what is known so far")
    arguments.add_argument("--seed", type=int, default=0)
    arguments.add_argument(
        "--staleness", type=int, nargs="+", default=STALENESS, help="an arm each; no bar but for 0 2"
    )
    arguments.add_argument("--tiny", action="store_true", help="two steps of everything, no bar")
    return arguments.parse_args()


def plan_of(options: argparse.Namespace) -> Plan:
    engine = dict(ENGINES[options.engine])
    if options.engine == "sglang":
        engine |= {"engine.weight_sync": options.weight_sync}
    plan = Plan(
        engine=engine,
        num_desktops=options.desktops,
        eval_tasks=options.tasks,
        grpo_steps=options.steps,
        groups_per_step=options.groups,
        evaluate_every=options.evaluate_every,
        learning_rate=options.learning_rate,
        train_s=options.train_s,
        arms_end_at=time.monotonic() + options.budget_s,
        seed=options.seed,
        more={"desktops.trajectory_timeout_s": 300.0} if options.tiny else {},
    )
    return replace(plan, eval_tasks=3, grpo_steps=2, groups_per_step=1) if options.tiny else plan


def timed(deskhand: Instance, start: str, staleness: int, plan: Plan, say: Teller) -> dict[str, Any]:
    """An arm and its wall time from launch to end; again with the transformers engine if it never sampled."""
    started = time.monotonic()
    found = arm(deskhand, start, staleness, plan, say)
    found["engine"] = plan.engine["engine.name"]
    if found["status"] not in ("finished", "ran out of time"):
        say(f"{found['message']}\n{why(deskhand)}")
        if found["status"] == "failed" and not found["step"] and plan.engine["engine.name"] != "transformers":
            plan = replace(plan, engine=ENGINES["transformers"])
            return timed(deskhand, start, staleness, plan, say) | {"engine_failure": found["message"]}
    return found | {"wall_s": time.monotonic() - started}


def all_arms(plan: Plan, options: argparse.Namespace, say: Teller) -> list[dict[str, Any]]:
    """One arm after the other, with the whole machine and an equal share of the time each."""
    found = []
    with Instance(without=["web"], slots=plan.num_desktops, env_workers=options.env_workers) as deskhand:
        for done, staleness in enumerate(options.staleness):
            share = (plan.arms_end_at - time.monotonic()) / (len(options.staleness) - done)
            mine = replace(on_gpus(plan, visible_gpus()), arms_end_at=time.monotonic() + share)
            found.append(timed(deskhand, options.start, staleness, mine, say))
            keep_model(found[-1], options.save)
            write(options.record, {"arms": found})
    return found


def on_gpus(plan: Plan, gpus: list[str]) -> Plan:
    """On one GPU trainer and server share it: a model of this size leaves room for both all the time."""
    if len(gpus) != 1 or plan.engine["engine.name"] != "sglang":
        return plan
    return replace(plan, engine=plan.engine | {"engine.placement": "colocated", "engine.sleeps": False})


def keep_model(found: dict[str, Any], folder: Path | None) -> None:
    """Copy the arm's last checkpoint out of its installation, which is removed at its end."""
    model = Path(found.pop("checkpoint")) / "model"
    if folder and model.is_dir():
        shutil.copytree(model, folder / f"staleness-{found['staleness']}")


def gpu_names() -> list[str]:
    import torch

    return [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]


def num_weights(start: str) -> int:
    """Of the model that the arms begin with."""
    folder = find_folder(start, shipped=SHIPPED, data=Path())
    assert folder is not None, f"--start: there is no model {start}"
    with safe_open(folder / "model.safetensors", "pt") as file:
        return sum(math.prod(file.get_slice(name).get_shape()) for name in file.keys())  # noqa: SIM118


def versions() -> dict[str, str]:
    """Of what trains; SGLang's is pinned by `make sglang-env`."""
    return {name: version(name) for name in ("torch", "transformers", "celery", "Django")}


class Teller:
    """Prints lines with the seconds since the start, at once."""

    def __init__(self, started: float) -> None:
        self.started = started

    def __call__(self, line: str) -> None:
        print(f"{time.monotonic() - self.started:6.1f} s  {line}", flush=True)


def report(figures: dict[str, Any], *, tiny: bool) -> int:
    arms = figures["arms"]
    for one in arms:
        one["missed"] = missed_by(one, arms[0])
    print_table(HEADER, [row_of(one) for one in arms])
    figures["side_by_side"] = side_by_side(arms)
    if tiny:
        passed = all(one["status"] == "finished" for one in arms)
        print("tiny: every part ran" if passed else "tiny: a part did not run")
        return 0 if passed else 1
    has_both = [one["staleness"] for one in arms] == list(STALENESS)
    passed = has_both and not any(one["missed"] for one in arms)
    return finish("learning", figures, passed=passed, results=RESULTS / "gpu")


def missed_by(one: dict[str, Any], in_turns: dict[str, Any]) -> list[str]:
    """What of the bar an arm missed, in words; `in_turns` is the arm with staleness 0."""
    if not all(one[name] for name in EVALUATIONS):
        return ["it was not evaluated"]
    before, after = one["greedy_before"], one["greedy_after"]
    missed = [f"{after['num_tasks']} tasks"] if after["num_tasks"] < MIN_TASKS else []
    missed += [f"greedy {before['success']:.0%} before"] if before["success"] > MAX_BEFORE else []
    sampled = one["before"]["success"]
    missed += [f"sampled {sampled:.0%} before"] if sampled < MIN_SAMPLED else []
    missed += [f"greedy {after['success']:.0%} after"] if after["success"] < MIN_AFTER else []
    missed += ["sampled did not rise"] if one["after"]["success"] <= sampled else []
    if one is in_turns or not in_turns["greedy_after"]:
        return missed
    behind = in_turns["greedy_after"]["success"] - after["success"]
    share = one["grpo_s"] / one["step"] / (in_turns["grpo_s"] / in_turns["step"])
    missed += [f"greedy {behind:.1%} below in turns"] if behind > MAX_BEHIND else []
    return missed + ([f"{share:.0%} of the seconds in turns"] if share > MAX_TIME else [])


def row_of(one: dict[str, Any]) -> tuple[object, ...]:
    """One table row."""
    costs = [f"{one['costs'].get(f'time/{name}_s', 0):.2f}" for name in ("step", "rollout", "train")]
    name = "in turns" if not one["staleness"] else f"staleness {one['staleness']}"
    steps = (name, one["status"], one["step"], f"{one['grpo_s']:.0f}", *costs)
    shares = [percent(one[name]) for name in EVALUATIONS]
    return (*steps, *shares, "; ".join(one["missed"]) or "met")


def percent(found: dict[str, Any] | None) -> str:
    if found is None:
        return "-"
    return f"{found['success']:.0%} [{found['low']:.0%}, {found['high']:.0%}] n={found['num_samples']}"


if __name__ == "__main__":
    sys.exit(main())
