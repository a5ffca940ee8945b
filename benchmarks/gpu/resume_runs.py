"""One run of `resume`: a trainer that is started again when it dies, and who is killed when."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import psutil

from benchmarks.gpu.recorded_world import RecordedWorld

REPOSITORY = Path(__file__).resolve().parents[2]
STEPS, EVERY, STRUCK_AT = 8, 3, 5
"""Steps of a run, between checkpoints, and the step in which something dies."""
MAX_STARTS = 3
AWAIT_S = 60.0
"""How long a strike waits for a checkpoint that is being written."""


@dataclass
class Strike:
    """Kills once, at a moment that it recognises."""

    name: str
    sees: Callable[[str, dict[str, Any]], bool] = lambda route, body: False
    looks: Callable[[], bool] | None = None
    """Asked all the time, for moments that no request shows."""
    awaits: Callable[[], bool] = lambda: True
    """What must be true before it kills; whoever asks waits meanwhile."""
    victim: str = "trainer"
    """Empty: nobody is to die."""
    struck_at: float = 0.0
    run: Run | None = None

    def __call__(self, moment: str, route: str, body: dict[str, Any]) -> None:
        if not self.struck_at and self.run is not None and self.sees(route, body):
            self.struck_at = time.monotonic()
            while not self.awaits() and time.monotonic() - self.struck_at < AWAIT_S:
                time.sleep(0.02)
            self.run.kill(self.victim)


@dataclass
class Run:
    """One experiment until it finishes; its trainer is started again when it dies."""

    world: RecordedWorld
    config: Path
    output: Path
    processes: int
    environment: dict[str, str]
    """Of the trainer: which GPUs it has."""
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
        try:
            while True:
                self.starts += 1
                code = self._train(started)
                if code == 0 and (self.output / "outcome.json").exists():
                    break
                if self.starts > MAX_STARTS or not self.killed:
                    raise RuntimeError(f"the trainer ended with code {code}:\n{self.log()[-3000:]}")
        finally:
            self.is_over = True
        return {
            "run": self.strike.name,
            "seconds": round(time.monotonic() - started, 1),
            "starts": self.starts,
            "killed": self.killed,
            "losses": self.world.curve("loss/total"),
            "grad_norms": self.world.curve("optimiser/grad_norm"),
            "drift_max": max(self._metric("sync/drift")),
            "sync_s": self._metric("sync/seconds"),
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
            number = trainer_rank(self.process, rank=self.processes - 1)
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
        path = self.output / "log"
        return path.read_text(errors="replace") if path.exists() else ""

    def _train(self, started: float) -> int:
        environment = self.world.environment() | self.environment | {"DESKHAND_TORCH_THREADS": "1"}
        with (self.output / "log").open("ab") as log:
            self.process = start_trainer(self.config, self.output, self.processes, environment, log)
            try:
                return self.process.wait(max(1.0, self.limit_s - (time.monotonic() - started)))
            finally:
                end_family(self.process)

    def _metric(self, name: str) -> list[float]:
        return [point["values"][name] for point in self.world.seen["/metrics"] if name in point["values"]]


def start_trainer(
    config: Path, output: Path, processes: int, environment: dict[str, str], log: IO[bytes]
) -> subprocess.Popen[bytes]:
    """The trainer's ranks, as the gpu worker starts them; `environment` beside ours."""
    launcher = [sys.executable, "-m", "training.distributed.launch", "--ranks", str(processes)]
    launcher += ["-m", "training.loop.train"]
    return subprocess.Popen(
        [*launcher, "--config", str(config), "--output", str(output)],
        cwd=REPOSITORY,
        env=os.environ | environment,
        stdout=log,
        stderr=subprocess.STDOUT,
    )


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


def at_step(route: str, body: dict[str, Any]) -> bool:
    """When the groups of the next step are asked for: between two checkpoints."""
    return route == "/groups" and body["step"] == STRUCK_AT + 1


def before_commit(route: str, body: dict[str, Any]) -> bool:
    """All buckets of a version are in the engine; it has not been named."""
    is_last = body.get("stage") == "commit"
    return route == "/weights" and is_last and body["policy_version"] == STRUCK_AT


def in_broadcast() -> Callable[[str, dict[str, Any]], bool]:
    """The engine waits in a broadcast; the trainer is in it, too."""
    begun: list[int] = []

    def sees(route: str, body: dict[str, Any]) -> bool:
        if body.get("stage") == "begin":
            begun.append(body["policy_version"])
        return route == "/weights" and body.get("stage") == "bucket" and begun[-1] == STRUCK_AT

    return sees


def make_strike(name: str, output: Path) -> Strike:
    """The strike of the run `name`, which trains into `output`. Raises KeyError for an unknown one."""

    def is_saving() -> bool:
        return any(output.glob(f"checkpoints/*-grpo-{EVERY:06d}.tmp"))

    def is_saved() -> bool:
        return any(output.glob(f"checkpoints/*-grpo-{EVERY:06d}"))

    made: dict[str, Callable[[], Strike]] = {
        "undisturbed": lambda: Strike(name, victim=""),
        "trainer": lambda: Strike(name, at_step, awaits=is_saved),
        "before-commit": lambda: Strike(name, before_commit, awaits=is_saved),
        "in-broadcast": lambda: Strike(name, in_broadcast(), awaits=is_saved),
        "checkpoint": lambda: Strike(name, looks=is_saving),
        "engine": lambda: Strike(name, at_step, victim="engine"),
        "colocated": lambda: Strike(name, victim=""),
        "colocated-pair": lambda: Strike(name, victim=""),
    }
    return made[name]()
