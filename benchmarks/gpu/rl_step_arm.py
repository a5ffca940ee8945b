"""One arm of `rl_step`: a split of the GPUs and a bound on staleness, and the run that measures it."""

from __future__ import annotations

import contextlib
import math
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from benchmarks.gpu.flops import MERGED, utilisation
from benchmarks.gpu.policy_process import PolicyProcess
from benchmarks.gpu.resume_runs import end_family, start_trainer
from benchmarks.gpu.rl_step_figures import GpuWatch, figures_of, work_of
from benchmarks.gpu.rl_step_world import PlayedWorld
from benchmarks.gpu.sizes import SIZES
from training.actions.coordinates import resized_size

MANY = 10**6
"""More steps than a run makes: it is ended from outside, before it would save its 16 bytes per weight."""
WIDGET_TOKENS = 1300
"""At most of a list of widgets; nearly all letters are tokens of their own."""
LEAVING_S = 40.0
"""A trainer that was asked to leave gets so long."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Arm:
    """How trainer and engine share the GPUs, and how far rollouts may run ahead."""

    trainers: int
    engines: int
    """Servers of one GPU each."""
    staleness: int = 0
    placement: str = "own"
    is_awake: bool = False
    """Colocated servers keep their memory while the trainer computes: only so do rollouts run ahead."""

    @property
    def split(self) -> str:
        """Arms of one split use the same policy server."""
        words = [f"{self.trainers}+{self.engines}"]
        if self.placement == "colocated":
            words += ["colocated", "awake"] if self.is_awake else ["colocated"]
        return ", ".join(words)

    @property
    def name(self) -> str:
        return f"{self.split}, " + (f"staleness {self.staleness}" if self.staleness else "in turns")

    @property
    def num_gpus(self) -> int:
        return self.trainers + (0 if self.placement == "colocated" else self.engines)

    @property
    def warm_up(self) -> int:
        """Steps that do not count: the first compiles, and what was asked for meanwhile is ready at once."""
        return 1 + self.staleness


@dataclass(frozen=True, kw_only=True, slots=True)
class Scale:
    """What differs between a GPU host and a try on a CPU."""

    size: str
    engine: str = "sglang"
    screen: tuple[int, int] = (1312, 736)
    turns: int = 8
    max_tokens: int = 56
    group_size: int = 8
    groups_per_trainer: int = 1
    """Groups of a step: the more trainers, the larger the step."""
    model: dict[str, Any] = field(default_factory=lambda: {"dtype": "bfloat16", "max_pixels": 1_003_520})
    optimiser: dict[str, Any] = field(default_factory=lambda: {"packing": True, "microbatch_tokens": 10_000})
    parallel: dict[str, Any] = field(default_factory=dict)
    shows: bool = True
    """The model sees screens; else it reads lists of widgets."""
    adapters: int = 0
    """Rank of LoRA; 0 = all weights learn."""
    engine_more: dict[str, Any] = field(
        default_factory=lambda: {"attention_backend": "triton", "memory_fraction": 0.8}
    )

    colocated_memory: float = 0.4
    """The engine's share of GPUs on which the trainer lives, too."""
    awake_memory: float = 0.25
    """The same for an engine that does not sleep."""

    @property
    def grid(self) -> tuple[int, int]:
        """Patches of a screen, across and down."""
        patch = SIZES[self.size].patch if self.size in SIZES else 16
        limits = (1, int(self.model["max_pixels"]))
        width, height = resized_size(self.screen, *limits, factor=2 * patch)
        return width // patch, height // patch

    def config(self, arm: Arm, model: Path) -> dict[str, Any]:
        """The experiment of an arm; trainer and policy server read the same."""
        engine: dict[str, Any] = {"name": self.engine}
        if self.engine == "sglang":
            channel = "ipc" if arm.placement == "colocated" else "nccl"
            engine |= {"servers": arm.engines, "placement": arm.placement, "weight_sync": channel}
            engine |= {"start_timeout_s": 400, "max_restarts": 0} | self.engine_more
            if arm.placement == "colocated":
                engine["sleeps"] = not arm.is_awake
                engine["memory_fraction"] = self.awake_memory if arm.is_awake else self.colocated_memory
        seen = math.prod(self.grid) // MERGED if self.shows else WIDGET_TOKENS
        tokens = self.turns * (seen + self.max_tokens + 100)
        return {
            "model": {"path": str(model)} | self.model,
            "prompt": {"style": "computer-use"} | ({} if self.shows else {"observation": ["accessibility"]}),
            "lora": {"rank": self.adapters},
            "sampling": {"max_completion_tokens": self.max_tokens, "max_context_tokens": tokens + 2048},
            "algorithm": {
                "group_size": self.group_size,
                "groups_per_step": arm.trainers * self.groups_per_trainer,
                "num_steps": MANY,
                "max_staleness": arm.staleness,
                "skip_zero_variance": False,
            },
            "optimiser": {"learning_rate": 1e-6, "num_processes": arm.trainers} | self.optimiser,
            "parallel": self.parallel,
            "checkpoints": {"every": MANY},
            "evaluation": {"num_tasks": 0},
            "engine": engine,
        }


@dataclass(kw_only=True)
class Runner:
    """Runs the arms of one split after each other."""

    scale: Scale
    model: Path
    folder: Path
    gpus: list[str]
    """Names of the visible ones; empty on a CPU."""
    steps: int
    """Measured ones, after the warm-up."""

    def policy(self, arm: Arm) -> PolicyProcess:
        """The policy server of the arm's split, not yet entered."""
        first = 0 if arm.placement == "colocated" else arm.trainers
        mine = self.gpus[first : first + arm.engines]
        return PolicyProcess(
            model=self.model,
            config=self.scale.config(arm, self.model),
            folder=self.folder / f"policy-{arm.trainers}-{arm.engines}-{arm.placement}",
            tiny=not self.gpus,
            environment={"DESKHAND_ENGINE_GPUS": ",".join(mine)} if mine else {},
        )

    def run(self, arm: Arm, world: PlayedWorld, limit_s: float) -> dict[str, Any]:
        """Figures of the arm. Raises RuntimeError when its trainer fails or takes too long."""
        world.start_anew()
        world.last_step = arm.warm_up + self.steps
        output = self.folder / arm.name.replace(", ", "-").replace(" ", "-")
        output.mkdir(parents=True)
        config = output / "config.yaml"
        config.write_text(yaml.safe_dump(self.scale.config(arm, self.model)))
        started = time.monotonic()
        environment = {"CUDA_VISIBLE_DEVICES": ",".join(self.gpus[: arm.trainers])} if self.gpus else {}
        with (output / "log").open("wb") as log, GpuWatch() as watch:
            process = start_trainer(config, output, arm.trainers, world.environment() | environment, log)
            try:
                _await_steps(process, world, started + limit_s)
            except RuntimeError as error:
                tail = (output / "log").read_text(errors="replace")[-12_000:]
                raise RuntimeError(f"{error}\n{tail}") from None
            finally:
                end_family(process)
        figures = figures_of(arm, world, watch, began=started)
        return figures | {"mfu": self._mfu(arm, world, figures) if self.gpus else 0.0}

    def _mfu(self, arm: Arm, world: PlayedWorld, figures: dict[str, Any]) -> float:
        """Of the seconds of forward, backward and update, whole: pictures are decoded within them."""
        work = work_of(world, arm, math.prod(self.scale.grid) if self.scale.shows else 0)
        seconds, only_adapters = figures["train_s"] * figures["steps"], self.scale.adapters > 0
        size = SIZES[self.scale.size]
        return utilisation(size, work, seconds, arm.trainers, only_adapters=only_adapters)["mfu"]


def _await_steps(process: subprocess.Popen[bytes], world: PlayedWorld, deadline: float) -> None:
    """Until the last step was reported and the trainer has left. Raises RuntimeError."""
    while world.last_step not in world.times:
        if process.poll() is not None:
            raise RuntimeError(f"the trainer ended with code {process.returncode}")
        if time.monotonic() > deadline:
            raise RuntimeError(f"step {world.last_step} was not made in time")
        time.sleep(0.05)
    try:
        process.wait(LEAVING_S)
    except subprocess.TimeoutExpired:
        return  # all that counts was measured; it is ended


@contextlib.contextmanager
def starting(policy: PolicyProcess, world: PlayedWorld, *, is_colocated: bool) -> Iterator[None]:
    """Start the policy server while the block goes on; the world says when it is ready, or why not.

    A colocated one is ready before the block begins, as in the product: it takes its share of what is free.
    """

    def start() -> None:
        try:
            policy.__enter__()
        except Exception as error:  # noqa: BLE001 - a thread's edge; the trainer is told
            world.why_not = f"the policy server did not start: {error}\n{policy.tail(2000)}"
        world.is_ready.set()

    thread = threading.Thread(target=start, daemon=True)
    thread.start()
    if is_colocated:
        thread.join()
    try:
        yield
    finally:
        if thread.is_alive():  # the trainer failed first: no trainer waits for an engine any more
            policy.process.terminate()
            thread.join(60)
        elif not world.why_not:
            policy.close()
