"""The lanes of `resume`: a policy server with its recorded world, and the runs that follow each other there.

Lanes go on beside each other where there are GPUs; all train the groups that the first lane's server drew.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from benchmarks.gpu.policy_process import PolicyProcess
from benchmarks.gpu.recorded_world import Recorded, RecordedWorld, make_tasks, record
from benchmarks.gpu.resume_runs import EVERY, STEPS, Run, make_strike

MAX_TOKENS = 12


@dataclass(frozen=True, kw_only=True, slots=True)
class Scale:
    """What differs between a GPU host and a CPU."""

    is_cpu: bool
    processes: int
    """Of the trainer, where a lane does not say otherwise."""
    tolerance: float
    """Absolute, nats. A GPU adds gradients up in another order every time, in bfloat16."""
    screen: tuple[int, int]
    dtype: str
    max_pixels: int


CPU = Scale(is_cpu=True, processes=2, tolerance=1e-5, screen=(256, 192), dtype="float32", max_pixels=49_152)
GPU = Scale(
    is_cpu=False, processes=1, tolerance=5e-3, screen=(640, 480), dtype="bfloat16", max_pixels=1_003_520
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Lane:
    """Where trainer and engine are."""

    name: str
    runs: tuple[str, ...]
    placement: str = "own"
    gpus: int = 1
    """Of the engine's one server, and colocated of the trainer."""


LANES = (
    Lane(name="own", runs=("undisturbed", "trainer")),
    Lane(name="second", runs=("engine", "in-broadcast")),
    Lane(name="third", runs=("before-commit", "checkpoint")),
    Lane(name="colocated", runs=("colocated",), placement="colocated"),
    Lane(name="colocated-pair", runs=("colocated-pair",), placement="colocated", gpus=2),
)
"""The first run of the first lane is what the others are compared with."""


@dataclass(frozen=True, kw_only=True)
class Stage:
    """What all lanes share."""

    scale: Scale
    folder: Path
    model: Path
    wanted: tuple[str, ...]
    """Runs."""
    deadline: float
    recorded: Future[Recorded]

    @property
    def frames(self) -> Path:
        return self.folder / "frames"


def go_through(lane: Lane, stage: Stage) -> list[dict[str, Any]]:
    """All wanted runs of a lane; one that fails, or is not begun in time, has an `error`."""
    wanted = [name for name in lane.runs if name in stage.wanted]
    found: list[dict[str, Any]] = []
    try:
        with start_engine(lane, stage) as policy:
            say(f"{lane.name}: policy server ready after {policy.start_s:.0f} s")
            tasks = make_tasks(4, stage.scale.screen)
            if lane is LANES[0]:
                stage.recorded.set_result(record(policy, tasks, 4, stage.frames, max_tokens=MAX_TOKENS))
                say("recorded")
            recorded = stage.recorded.result(max(1.0, stage.deadline - time.monotonic()))
            draws = lane.placement == "colocated"
            with RecordedWorld(policy, tasks, recorded, stage.frames, draws=draws) as world:
                for name in wanted:
                    found.append(one_run(world, lane, name, stage))
                    say(f"{name}: {json.dumps(found[-1])}")
    except Exception as error:  # noqa: BLE001 - the edge: a lane that fails must not end the others
        say(f"{lane.name} failed: {error!r}")
        if lane is LANES[0] and not stage.recorded.done():
            stage.recorded.set_exception(RuntimeError(f"nothing was recorded: {error}"))
        missing = wanted[len(found) :]
        found += [failed(name, f"{type(error).__name__}: {error}") for name in missing]
    return found


def start_engine(lane: Lane, stage: Stage) -> PolicyProcess:
    """The lane's policy server, not yet entered."""
    gpus = visible_gpus()
    mine = gpus[: lane.gpus] if lane.placement == "colocated" else gpus[-lane.gpus :]
    return PolicyProcess(
        model=stage.model,
        config=config_values(lane, stage),
        folder=stage.folder / f"policy-{lane.name}",
        tiny=stage.scale.is_cpu,
        environment={} if stage.scale.is_cpu else {"DESKHAND_ENGINE_GPUS": ",".join(mine)},
    )


def one_run(world: RecordedWorld, lane: Lane, name: str, stage: Stage) -> dict[str, Any]:
    left_s = stage.deadline - time.monotonic()
    if left_s < 1:
        return failed(name, "no time was left")
    output, config = stage.folder / name, stage.folder / f"{name}.yaml"
    config.write_text(yaml.safe_dump(config_values(lane, stage)))
    processes = trainer_processes(lane, stage.scale)
    environment = {} if stage.scale.is_cpu else {"CUDA_VISIBLE_DEVICES": ",".join(visible_gpus()[:processes])}
    strike = make_strike(name, output)
    run = Run(world, config, output, processes, environment, strike, limit_s=left_s)
    try:
        return run.go() | {"rests": list(world.rests), "drawn_by": list(world.drawn_by)}
    except (RuntimeError, subprocess.TimeoutExpired, ValueError) as error:
        say(f"{name} failed: {error}\n{run.log()[-3000:]}\n{world.policy.tail(3000)}")
        losses = world.curve("loss/total")
        return failed(name, str(error)[-500:]) | {"starts": run.starts, "losses_so_far": losses}
    finally:
        world.watch = lambda moment, route, body: None


def failed(name: str, words: str) -> dict[str, Any]:
    return {"run": name, "error": words, "losses": {}, "starts": 0}


def trainer_processes(lane: Lane, scale: Scale) -> int:
    if lane.placement == "colocated":
        return max(lane.gpus, scale.processes if scale.is_cpu else 1)
    return scale.processes


def config_values(lane: Lane, stage: Stage) -> dict[str, Any]:
    """The experiment; the policy server reads the same."""
    scale, processes = stage.scale, trainer_processes(lane, stage.scale)
    channel = "ipc" if lane.placement == "colocated" else "nccl"
    engine: dict[str, Any] = {
        "name": "sglang",
        "placement": lane.placement,
        "gpus_per_server": lane.gpus,
        "weight_sync": channel,
        "start_timeout_s": 300,
    }
    if not scale.is_cpu:
        engine |= {"attention_backend": "triton", "memory_fraction": 0.95}
        engine["extra_arguments"] = ["--max-total-tokens=32768", "--disable-cuda-graph"]
    return {
        "model": {"path": str(stage.model), "dtype": scale.dtype, "max_pixels": scale.max_pixels},
        "sampling": {"max_completion_tokens": MAX_TOKENS, "max_context_tokens": 4096},
        "algorithm": {"group_size": 4, "groups_per_step": 2, "num_steps": STEPS, "skip_zero_variance": False},
        "optimiser": {"learning_rate": 1e-4, "microbatch_size": 4, "num_processes": processes},
        "checkpoints": {"every": EVERY, "keep_last": 3},
        "evaluation": {"num_tasks": 0},
        "engine": engine,
    }


def make_model_folder(folder: Path, *, is_cpu: bool) -> Path:
    """Random weights with the heads that kernels want."""
    if is_cpu:
        from training.content.recipes.tiny.make_checkpoint import TinySizes, make_tiny

        return make_tiny(folder / "model", sizes=TinySizes(text_hidden=64, text_intermediate=128))
    from benchmarks.gpu import models

    command = [sys.executable, "-m", models.__name__, "small", str(folder / "model")]
    subprocess.run(command, check=True, timeout=120)
    return folder / "model"


def visible_gpus() -> list[str]:
    return os.environ.get("CUDA_VISIBLE_DEVICES", "0,1").split(",")


def say(words: str) -> None:
    print(f"[{time.strftime('%H:%M:%S')}] {words}", flush=True)
