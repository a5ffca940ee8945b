"""Kill tests: whoever dies, the run goes on, and its losses are those of the run that nobody disturbed.

    python -m benchmarks.gpu.resume [--cpu]

Every run trains the same recorded groups, so that losses depend on the trainer's state alone; checkpoints are
written in the background. Runs: undisturbed; a trainer process killed between two checkpoints; killed before
a weight sync was committed, and in the middle of a broadcast; killed while a checkpoint is being written; an
SGLang server killed. A killed trainer is started again with the same command, as the gpu worker does.

On GPUs: SGLang on the last visible one, weights over NCCL. With --cpu: two gloo processes, a tiny model, and
the tests' stand-in for the SGLang server, which is a process of its own with SGLang's HTTP calls.

Bar: every run ends by itself and no loss is further from the undisturbed run's than the tolerance; the canary
agrees after every sync.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import yaml

from benchmarks.gpu.policy_process import PolicyProcess
from benchmarks.gpu.recorded_world import RecordedWorld, make_tasks, record
from benchmarks.report import finish, print_table

RESULTS = Path(__file__).resolve().parents[1] / "results"
REPOSITORY = Path(__file__).resolve().parents[2]
STEPS, EVERY, STRUCK_AT = 8, 3, 5
"""Steps of a run, between checkpoints, and the step in which something dies."""
MAX_DRIFT = 0.02


@dataclass(frozen=True, kw_only=True, slots=True)
class Scale:
    """What differs between a GPU host and a CPU."""

    processes: int
    tolerance: float
    """Absolute, nats. A GPU adds gradients up in another order every time, in bfloat16."""
    screen: tuple[int, int]
    dtype: str
    max_pixels: int


CPU = Scale(processes=2, tolerance=1e-5, screen=(256, 192), dtype="float32", max_pixels=49_152)
GPU = Scale(processes=1, tolerance=5e-3, screen=(640, 480), dtype="bfloat16", max_pixels=1_003_520)


@dataclass
class Strike:
    """Kills once, at a moment that it recognises."""

    name: str
    sees: Callable[[str, dict[str, Any]], bool] = lambda route, body: False
    looks: Callable[[], bool] | None = None
    """Asked all the time, for moments that no request shows."""
    victim: str = "trainer"
    struck_at: float = 0.0
    run: Run | None = None

    def __call__(self, moment: str, route: str, body: dict[str, Any]) -> None:
        if not self.struck_at and self.run is not None and self.sees(route, body):
            self.struck_at = time.monotonic()
            self.run.kill(self.victim)


@dataclass
class Run:
    """One experiment until it finishes; its trainer is started again when it dies."""

    world: RecordedWorld
    config: Path
    output: Path
    scale: Scale
    strike: Strike
    starts: int = 0
    killed: list[str] = field(default_factory=list)
    process: subprocess.Popen[bytes] | None = None
    is_over: bool = False
    limit_s: float = 600.0

    def go(self) -> dict[str, Any]:
        """Figures of the run. Raises TimeoutExpired or RuntimeError when it does not end."""
        self.world.start_anew()
        self.world.watch, self.strike.run = self.strike, self
        self.output.mkdir(parents=True)
        started = time.monotonic()
        threading.Thread(target=self._look, daemon=True).start()
        while True:
            self.starts += 1
            code = self._train(started)
            outcome = self.output / "outcome.json"
            if code == 0 and outcome.exists():
                self.is_over = True
                break
            if self.starts > 3 or not self.killed:
                raise RuntimeError(f"the trainer ended with code {code}:\n{self.log()[-3000:]}")
        return {
            "run": self.strike.name,
            "seconds": round(time.monotonic() - started, 1),
            "starts": self.starts,
            "killed": self.killed,
            "losses": self.world.curve("loss/total"),
            "grad_norms": self.world.curve("optimiser/grad_norm"),
            "drift_max": max(self._metric("sync/drift")),
            "fell_back": sum(self._metric("sync/fell_back")),
            "resumed_from": [
                Path(line.split()[-1]).name for line in self.log().splitlines() if "resuming from" in line
            ],
        }

    def kill(self, victim: str) -> None:
        """SIGKILL to one process, by its id."""
        if victim == "engine":
            number = self.world.policy.call("GET", "/engine")["servers"][0]["pid"]
        else:
            assert self.process is not None, "it was started"
            number = trainer_rank(self.process, rank=self.scale.processes - 1)
        os.kill(number, signal.SIGKILL)
        self.killed.append(victim)

    def _look(self) -> None:
        """Strike at a moment that shows in the folder."""
        looks = self.strike.looks
        while looks is not None and not self.strike.struck_at and not self.is_over:
            if looks():
                self.strike.struck_at = time.monotonic()
                self.kill(self.strike.victim)
            time.sleep(0.001)

    def log(self) -> str:
        return (self.output / "log").read_text(errors="replace")

    def _train(self, started: float) -> int:
        launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
        launcher += ["--nproc-per-node", str(self.scale.processes), "-m", "training.train"]
        with (self.output / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [*launcher, "--config", str(self.config), "--output", str(self.output)],
                cwd=REPOSITORY,
                env=os.environ | self.world.environment() | {"DESKHAND_TORCH_THREADS": "1"},
                stdout=log,
                stderr=subprocess.STDOUT,
            )
            try:
                return self.process.wait(self.limit_s - (time.monotonic() - started))
            finally:
                end_family(self.process)

    def _metric(self, name: str) -> list[float]:
        return [point["values"][name] for point in self.world.seen["/metrics"] if name in point["values"]]


def trainer_rank(launcher: subprocess.Popen[bytes], rank: int) -> int:
    """The process of a rank."""
    for child in psutil.Process(launcher.pid).children(recursive=True):
        with contextlib.suppress(psutil.Error):
            if child.environ().get("RANK") == str(rank):
                return child.pid
    raise RuntimeError(f"there is no trainer process with rank {rank}")


def end_family(process: subprocess.Popen[bytes]) -> None:
    """The launcher and what it started, by their ids."""
    with contextlib.suppress(psutil.Error):
        for child in psutil.Process(process.pid).children(recursive=True):
            child.kill()
    process.kill()
    process.wait()


def strikes(output: Callable[[str], Path]) -> list[Strike]:
    """Every run; the moments are seen from the coordinator."""

    def at_step(route: str, body: dict[str, Any]) -> bool:
        return route == "/groups" and body["step"] == STRUCK_AT

    def before_commit(route: str, body: dict[str, Any]) -> bool:
        is_last = body.get("stage") == "commit"
        return route == "/weights" and is_last and body["policy_version"] == STRUCK_AT

    begun: list[int] = []

    def in_broadcast(route: str, body: dict[str, Any]) -> bool:
        if body.get("stage") == "begin":
            begun.append(body["policy_version"])
        return route == "/weights" and body.get("stage") == "bucket" and begun[-1] == STRUCK_AT

    def is_saving() -> bool:
        return any(output("checkpoint").glob(f"checkpoints/*-grpo-{EVERY:06d}.tmp"))

    return [
        Strike("undisturbed"),
        Strike("trainer", at_step),
        Strike("before-commit", before_commit),
        Strike("engine", at_step, victim="engine"),
        Strike("checkpoint", looks=is_saving),
        Strike("in-broadcast", in_broadcast),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cpu", action="store_true", help="a tiny model, gloo and the stand-in for SGLang")
    parser.add_argument("--results", default="")
    parser.add_argument("--limit", type=float, default=1800, help="seconds for everything")
    parser.add_argument("--runs", nargs="+", default=[], help="only these, and undisturbed")
    options = parser.parse_args()
    scale = CPU if options.cpu else GPU
    results = Path(options.results) if options.results else RESULTS if options.cpu else RESULTS / "gpu"
    with tempfile.TemporaryDirectory(prefix="resume-") as scratch:
        runs = run_all(options, scale, Path(scratch))
    baseline = runs[0]
    rows = []
    for run in runs:
        run["worst"] = worst_difference(baseline, run)
        rows.append(row_of(run))
    print_table(["run", "starts", "killed", "steps", "worst loss", "drift", "by disk", "seconds"], rows)
    problems = [words for run in runs for words in problems_of(run, scale, options)]
    for words in problems:
        print(f"MISSED: {words}")
    figures = {
        "tolerance": scale.tolerance,
        "processes": scale.processes,
        "engine": "SGLang stand-in on a CPU" if options.cpu else "SGLang",
        "gpus": gpu_names(),
        "runs": runs,
        "missed": problems,
        "command": " ".join(["python -m benchmarks.gpu.resume", *sys.argv[1:]]),
    }
    return finish("resume", figures, passed=not problems, results=results)


def run_all(options: argparse.Namespace, scale: Scale, folder: Path) -> list[dict[str, Any]]:
    """All runs against one policy server; one that fails, or is not begun in time, has an `error`."""
    deadline = time.monotonic() + options.limit
    model = make_model_folder(options, folder)
    policy = PolicyProcess(
        model=model,
        config=config_values(model, scale, cpu=options.cpu),
        folder=folder / "policy",
        tiny=options.cpu,
        environment={} if options.cpu else {"DESKHAND_ENGINE_GPUS": last_gpu()},
    )
    runs = []
    with policy:
        say(f"policy server ready after {policy.start_s:.0f} s")
        tasks = make_tasks(4, scale.screen)
        recorded = record(policy, tasks, 4, folder / "frames", max_tokens=12)
        say("recorded")
        with RecordedWorld(policy, tasks, recorded, folder / "frames") as world:
            for strike in strikes(lambda name: folder / name):
                if options.runs and strike.name not in ("undisturbed", *options.runs):
                    continue
                left = deadline - time.monotonic()
                runs.append(one_run(world, strike, scale, folder, model, options, left))
                say(f"{strike.name}: {runs[-1].get('error', 'done')}")
                if strike.name == "undisturbed" and "error" in runs[-1]:
                    break
    return runs


def one_run(
    world: RecordedWorld,
    strike: Strike,
    scale: Scale,
    folder: Path,
    model: Path,
    options: argparse.Namespace,
    left_s: float,
) -> dict[str, Any]:
    output = folder / strike.name
    config = folder / f"{strike.name}.yaml"
    config.write_text(yaml.safe_dump(config_values(model, scale, cpu=options.cpu)))
    run = Run(world, config, output, scale, strike, limit_s=left_s)
    if left_s < 1:
        return {"run": strike.name, "error": "no time was left", "losses": {}, "starts": 0}
    try:
        return run.go()
    except (RuntimeError, subprocess.TimeoutExpired, ValueError) as error:
        say(f"{strike.name} failed: {error}\n{run.log()[-3000:]}\n{world.policy.tail(3000)}")
        return {"run": strike.name, "error": str(error)[-500:], "losses": {}, "starts": run.starts}
    finally:
        world.watch = lambda moment, route, body: None


def make_model_folder(options: argparse.Namespace, folder: Path) -> Path:
    if options.cpu:
        from training.tiny import TinySizes, make_tiny

        return make_tiny(folder / "model", sizes=TinySizes(text_hidden=64, text_intermediate=128))
    from benchmarks.gpu import models

    command = [sys.executable, "-m", models.__name__, "small", str(folder / "model")]
    subprocess.run(command, check=True, timeout=120)
    return folder / "model"


def config_values(model: Path, scale: Scale, *, cpu: bool) -> dict[str, Any]:
    """The experiment; the policy server reads the same."""
    engine: dict[str, Any] = {"name": "sglang", "weight_sync": "nccl", "start_timeout_s": 300}
    if not cpu:
        engine |= {"attention_backend": "triton", "memory_fraction": 0.5}
        engine["extra_arguments"] = ["--max-total-tokens=32768", "--disable-cuda-graph"]
    return {
        "model": {"path": str(model), "dtype": scale.dtype, "max_pixels": scale.max_pixels},
        "sampling": {"max_completion_tokens": 12, "max_context_tokens": 4096},
        "algorithm": {"group_size": 4, "groups_per_step": 2, "num_steps": STEPS, "skip_zero_variance": False},
        "optimiser": {
            "learning_rate": 1e-4,
            "microbatch_size": 4,
            "num_processes": scale.processes,
        },
        "checkpoints": {"every": EVERY, "keep_last": 3},
        "evaluation": {"num_tasks": 0},
        "engine": engine,
    }


def worst_difference(baseline: dict[str, Any], run: dict[str, Any]) -> float:
    """Largest distance of a loss to the undisturbed run's at the same step; inf when steps are missing."""
    losses = baseline["losses"]
    if not losses or run["losses"].keys() != losses.keys():
        return float("inf")
    return max(abs(run["losses"][step] - losses[step]) for step in losses)


def problems_of(run: dict[str, Any], scale: Scale, options: argparse.Namespace) -> list[str]:
    name = run["run"]
    if "error" in run:
        return [f"{name}: {run['error'][-200:]}"]
    found = []
    if not run["worst"] <= scale.tolerance:
        found.append(f"{name}: a loss is {run['worst']:.2e} away, the tolerance is {scale.tolerance:.0e}")
    if len(run["losses"]) != STEPS:
        found.append(f"{name}: {len(run['losses'])} of {STEPS} steps")
    if not run["drift_max"] <= MAX_DRIFT:
        found.append(f"{name}: drift {run['drift_max']:.3f}")
    if name != "undisturbed" and not run["killed"]:
        found.append(f"{name}: nothing was killed")
    return found


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


def last_gpu() -> str:
    return os.environ.get("CUDA_VISIBLE_DEVICES", "0,1").split(",")[-1]


def gpu_names() -> str:
    import torch

    if not torch.cuda.is_available():
        return "none"
    return f"{torch.cuda.device_count()}x {torch.cuda.get_device_name(0)}"


def say(words: str) -> None:
    print(f"[{time.strftime('%H:%M:%S')}] {words}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
