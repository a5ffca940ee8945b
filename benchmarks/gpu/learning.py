"""Learning on a GPU host: random weights -> SFT -> GRPO on real X11 desktops, in turns and asynchronously.

A private installation (real Redis, workers, desktops) makes a small random Qwen3-VL, warms it up on oracle
demonstrations that it records, and trains it by GRPO twice from the same checkpoint: with rollouts and
optimiser steps in turns, and with staleness 2. With --halves both run at once, each on its half of cores and
GPUs. The engine is SGLang; when its server does not come up, the run goes on with the transformers engine and
says so ("engine" in the result).

Bar: every arm ends at >= 90 % held-out success over >= 60 tasks, above the warm-up's. An arm whose time runs
out ends with its last held-out evaluation.

The warm-up and the arms may be run apart: --warm-up-only --save FOLDER, then --warm-start FOLDER.

    python -m benchmarks.gpu.learning [--engine sglang|transformers] [--desktops 32] [--halves] [--tiny]
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import threading
import time
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.gpu.learning_arms import Plan, arm, restrict, warm_up, why, write
from benchmarks.gpu.learning_model import SIZES, make_model
from benchmarks.report import RESULTS, finish, print_table
from testing.learning_curves import side_by_side
from testing.private_installation import Instance
from workers.gpu.gpu_placement import visible_gpus

BAR, MIN_TASKS = 0.90, 60
STALENESS = (0, 2)
ENGINES: dict[str, dict[str, object]] = {
    "transformers": {"engine.name": "transformers"},
    "sglang": {
        "engine.name": "sglang",
        # Of what is free at its start; the cap on tokens below keeps it to less than 1 GB.
        "engine.memory_fraction": 0.5,
        "engine.max_running": 96,
        # Heads of 16 and 32 are below what the binary kernels are made for.
        "engine.attention_backend": "triton",
        "engine.start_timeout_s": 120,
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
HEADER = ("arm", "status", "steps", "GRPO, s", "step, s", "rollout, s", "train, s", "before", "after", "bar")


def main() -> int:
    options = parse()
    started = time.monotonic()
    say = Teller(started)
    plan = plan_of(options)
    figures: dict[str, Any] = {"engine": options.engine, "asked_engine": options.engine, "arms": []}
    figures |= {"gpus": gpu_names(), "versions": versions()}
    with tempfile.TemporaryDirectory(prefix="learning-", dir="/tmp") as folder:
        warm = options.warm_start
        if warm is None:
            plan, warm = warmed(Path(folder), plan, options, figures, say)
        else:
            figures["warm_up"] = earlier(options.warm_start)
        if warm and not options.warm_up_only:
            plan = replace(plan, arms_end_at=started + options.budget_s)
            figures["arms"] = (both_halves if options.halves else in_turns)(warm, plan, options, say)
    figures["wall_s"] = time.monotonic() - started
    write(options.record, figures)
    if options.warm_up_only:
        print(f"before GRPO: {percent(figures['warm_up'].get('before'))}")
        return 0 if figures["warm_up"]["status"] == "finished" else 1
    return report(figures, tiny=options.tiny)


def parse() -> argparse.Namespace:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--engine", choices=sorted(ENGINES), default="sglang")
    arguments.add_argument("--placement", choices=("own", "colocated"), default="own")
    arguments.add_argument("--weight-sync", choices=("auto", "disk", "nccl", "ipc"), default="auto")
    arguments.add_argument("--size", choices=sorted(SIZES), default="wide", help="of the random model")
    arguments.add_argument("--desktops", type=int, default=32)
    arguments.add_argument("--env-workers", type=int, default=4)
    arguments.add_argument("--sft-steps", type=int, default=1700)
    arguments.add_argument("--sft-goal", type=float, default=0.6)
    arguments.add_argument("--steps", type=int, default=60, help="of GRPO, per arm")
    arguments.add_argument("--train-s", type=float, default=0.0, help="of GRPO, per arm; 0 = all its steps")
    arguments.add_argument("--evaluate-every", type=int, default=20, help="steps, per arm")
    arguments.add_argument("--groups", type=int, default=12, help="of 8 trajectories per step")
    arguments.add_argument("--learning-rate", type=float, default=6e-4)
    arguments.add_argument("--tasks", type=int, default=96, help="held-out tasks of an evaluation")
    arguments.add_argument("--budget-s", type=float, default=520, help="all together; arms are cut short")
    arguments.add_argument("--halves", action="store_true", help="both arms at once on half the machine each")
    arguments.add_argument("--demonstrations", type=int, default=400, help="per family")
    arguments.add_argument("--warm-up-only", action="store_true")
    arguments.add_argument(
        "--save", type=Path, help="new folder for the warmed-up model, or the arms' models"
    )
    arguments.add_argument("--warm-start", type=Path, help="a model to start the arms from: no warm-up")
    arguments.add_argument("--record", type=Path, help="file that gets what is known so far")
    arguments.add_argument("--seed", type=int, default=0)
    arguments.add_argument("--tiny", action="store_true", help="two steps of everything, no bar")
    return arguments.parse_args()


def plan_of(options: argparse.Namespace) -> Plan:
    engine = dict(ENGINES[options.engine])
    if options.engine == "sglang":
        engine |= {"engine.placement": options.placement, "engine.weight_sync": options.weight_sync}
    plan = Plan(
        engine=engine,
        num_desktops=options.desktops,
        eval_tasks=options.tasks,
        sft_steps=options.sft_steps,
        sft_batch=24,
        sft_goal=options.sft_goal,
        demonstrations=options.demonstrations,
        grpo_steps=options.steps,
        groups_per_step=options.groups,
        evaluate_every=options.evaluate_every,
        learning_rate=options.learning_rate,
        train_s=options.train_s,
        warm_up_limit_s=options.budget_s * (0.9 if options.warm_up_only else 0.6),
        evaluates_before=bool(options.warm_start and not earlier(options.warm_start)),
        arms_end_at=time.monotonic() + options.budget_s,
        seed=options.seed,
        more={"desktops.trajectory_timeout_s": 300.0} if options.tiny else {},
    )
    if not options.tiny:
        return plan
    return replace(plan, eval_tasks=3, sft_steps=2, demonstrations=2, grpo_steps=2, groups_per_step=1)


def warmed(
    folder: Path, plan: Plan, options: argparse.Namespace, figures: dict[str, Any], say: Teller
) -> tuple[Plan, Path | None]:
    """The warm-up in an installation of its own; its model, in --save or in `folder`, None if it failed."""
    model = make_model(folder / "random", options.size, options.seed)
    figures["model"] = {"size": options.size, "bytes": (model / "model.safetensors").stat().st_size}
    with Instance(without=["web"], slots=plan.num_desktops, env_workers=options.env_workers) as deskhand:
        say(f"ready after {deskhand.seconds_to_ready:.1f} s")
        plan, figures["warm_up"] = warm_up_or_fall_back(deskhand, model, plan, figures, say)
        figures["warm_up"]["wall_s"] = time.monotonic() - say.started
        write(options.record, figures)
        checkpoint = figures["warm_up"].pop("checkpoint")
        if not checkpoint:
            say(why(deskhand))
            return plan, None
        kept = shutil.copytree(Path(checkpoint) / "model", options.save or folder / "warm")
    (kept / "warm-up.json").write_text(json.dumps(figures, default=str))
    return plan, kept


def earlier(warm_start: Path) -> dict[str, Any]:
    """The figures of the warm-up that made this folder; none for another model."""
    described = warm_start / "warm-up.json"
    return json.loads(described.read_text())["warm_up"] if described.exists() else {}


def warm_up_or_fall_back(
    deskhand: Instance, model: Path, plan: Plan, figures: dict[str, Any], say: Teller
) -> tuple[Plan, dict[str, Any]]:
    """The warm-up; a second time with the transformers engine when the first one could not sample at all."""
    warm = warm_up(deskhand, model, plan, say)
    if warm["checkpoint"] or figures["engine"] == "transformers":
        return plan, warm
    figures["engine"], figures["engine_failure"] = "transformers", warm["message"]
    say(f"{warm['message']}\n{why(deskhand)}\ngoing on with the transformers engine")
    plan = replace(plan, engine=ENGINES["transformers"])
    return plan, warm_up(deskhand, model, plan, say)


def timed(deskhand: Instance, checkpoint: str, staleness: int, plan: Plan, say: Teller) -> dict[str, Any]:
    """An arm and its wall time from launch to end; again with the transformers engine if it never sampled."""
    started = time.monotonic()
    found = arm(deskhand, checkpoint, staleness, plan, say)
    found["engine"] = plan.engine["engine.name"]
    if found["status"] not in ("finished", "ran out of time"):
        say(f"{found['message']}\n{why(deskhand)}")
        if found["status"] == "failed" and not found["step"] and plan.engine["engine.name"] != "transformers":
            plan = replace(plan, engine=ENGINES["transformers"])
            return timed(deskhand, checkpoint, staleness, plan, say) | {"engine_failure": found["message"]}
    return found | {"wall_s": time.monotonic() - started}


def in_turns(checkpoint: Path, plan: Plan, options: argparse.Namespace, say: Teller) -> list[dict[str, Any]]:
    """One arm after the other, with the whole machine and half of the time each."""
    found = []
    with Instance(without=["web"], slots=plan.num_desktops, env_workers=options.env_workers) as deskhand:
        for waiting in range(len(STALENESS), 0, -1):
            share = (plan.arms_end_at - time.monotonic()) / waiting
            mine = replace(plan, arms_end_at=time.monotonic() + share)
            found.append(timed(deskhand, str(checkpoint), STALENESS[-waiting], mine, say))
            keep_model(found[-1], options.save)
            write(options.record, {"arms": found})
    return found


def both_halves(
    checkpoint: Path, plan: Plan, options: argparse.Namespace, say: Teller
) -> list[dict[str, Any]]:
    """Both arms at once, each in an installation of its own on half of the cores, GPUs and desktops."""
    cores, gpus = sorted(os.sched_getaffinity(0)), visible_gpus()
    found: list[dict[str, Any]] = []
    lock = threading.Lock()

    def work(index: int, staleness: int) -> None:
        mine = gpus[index * len(gpus) // 2 : (index + 1) * len(gpus) // 2] or gpus
        if len(mine) == 1 and plan.engine["engine.name"] == "sglang":
            mine = mine * 2  # trainer and server share the GPU
        env = restrict(cores[index * len(cores) // 2 : (index + 1) * len(cores) // 2], mine)
        workers = max(1, options.env_workers // 2)
        told = Teller(say.started, f"staleness {staleness}: ")
        half = replace(plan, num_desktops=plan.num_desktops // 2, cancel_s=0.0)
        with Instance(without=["web"], slots=half.num_desktops, env_workers=workers, env=env) as deskhand:
            result = timed(deskhand, str(checkpoint), staleness, half, told)
            keep_model(result, options.save)
            with lock:
                found.append(result)
                write(options.record, {"arms": found})

    threads = [threading.Thread(target=work, args=pair) for pair in enumerate(STALENESS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(found, key=lambda one: one["staleness"])


def keep_model(found: dict[str, Any], folder: Path | None) -> None:
    """Copy the arm's last checkpoint out of its installation, which is removed at its end."""
    model = Path(found.pop("checkpoint")) / "model"
    if folder and model.is_dir():
        shutil.copytree(model, folder / f"staleness-{found['staleness']}")


def gpu_names() -> list[str]:
    import torch

    return [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]


def versions() -> dict[str, str]:
    """Of what trains; SGLang's is pinned by `make sglang-env`."""
    return {name: version(name) for name in ("torch", "transformers", "celery", "Django")}


class Teller:
    """Prints lines with the seconds since the start, at once."""

    def __init__(self, started: float, who: str = "") -> None:
        self.started = started
        self.who = who

    def __call__(self, line: str) -> None:
        print(f"{time.monotonic() - self.started:6.1f} s  {self.who}{line}", flush=True)


def report(figures: dict[str, Any], *, tiny: bool) -> int:
    rows = []
    for one in figures["arms"]:
        before = figures["warm_up"].get("before") or one["before"]
        one["passed"] = passes(before, one)
        costs = [f"{one['costs'].get(f'time/{name}_s', 0):.2f}" for name in ("step", "rollout", "train")]
        name = "synchronous" if not one["staleness"] else f"staleness {one['staleness']}"
        steps = (name, one["status"], one["step"], f"{one['grpo_s']:.0f}", *costs)
        rows.append((*steps, percent(before), percent(one["after"]), "met" if one["passed"] else "MISSED"))
    print_table(HEADER, rows)
    figures["side_by_side"] = side_by_side(figures["arms"])
    ended = len(figures["arms"]) == len(STALENESS)
    if tiny:
        passed = ended and all(one["status"] == "finished" for one in figures["arms"])
        print("tiny: every part ran" if passed else "tiny: a part did not run")
        return 0 if passed else 1
    passed = ended and all(one["passed"] for one in figures["arms"])
    return finish("learning", figures, passed=passed, results=RESULTS / "gpu")


def passes(before: dict[str, Any] | None, one: dict[str, Any]) -> bool:
    after = one["after"]
    learned = bool(before and after and after["success"] >= max(BAR, before["success"]))
    return learned and after["num_tasks"] >= MIN_TASKS


def percent(found: dict[str, Any] | None) -> str:
    if found is None:
        return "-"
    return f"{found['success']:.0%} [{found['low']:.0%}, {found['high']:.0%}] n={found['num_tasks']}"


if __name__ == "__main__":
    sys.exit(main())
