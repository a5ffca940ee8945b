"""One SGLang server as a child process: its command, how far its start is, and its end.

It is a member of its parent's process group and is ended by the kernel when the parent dies (PDEATHSIG);
SGLang's own workers do the same towards it. So nothing is orphaned, however the policy server ends.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import time
from dataclasses import dataclass, replace
from pathlib import Path

import psutil

from training.sampler.sampling_seed import sampling_seed
from training.sampler.sglang.http_client import AsyncSglang

DIE_WITH_PARENT = ("setpriv", "--pdeathsig", "KILL", "--")
"""The kernel ends the command when the thread that started it ends."""
STOP_GRACE_S = 5.0
TAIL_BYTES = 65536
REPOSITORY = Path(__file__).resolve().parents[3]

STAGES: tuple[tuple[str, str], ...] = (
    (r"ready to roll", "ready"),
    (r"Capture .*CUDA graph begin|Capturing batches", "capturing CUDA graphs"),
    (r"KV Cache is allocated|Memory pool end", "reserving memory for keys and values"),
    (r"Loading safetensors|Load weight begin", "loading weights"),
    (r"Init torch distributed begin", "starting its GPUs"),
    (r"server_args=", "starting its processes"),
)
"""Pattern of a log line -> what the start is at."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Launch:
    python: str
    """Interpreter that can import SGLang."""
    python_path: str
    """Further folders with modules, as in PYTHONPATH; empty when the interpreter has all."""
    image_folder: Path
    """The spool."""
    log_folder: Path
    arguments: tuple[str, ...]
    """Of `sglang.launch_server`, beside model, version, address and seed."""
    seed: int = 0
    """The experiment's."""
    attempt: int = 0
    """At the experiment, from 1; 0 = none."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Weights:
    folder: str
    """A checkpoint's."""
    policy_version: int
    adapter: str = ""
    """Folder of a LoRA adapter of it; "" = none. A server gets it when it runs."""

    @property
    def adapter_name(self) -> str:
        """What requests call the adapter."""
        return f"deskhand-{self.policy_version}" if self.adapter else ""

    @property
    def base(self) -> Weights:
        """Without the adapter."""
        return replace(self, adapter="")


class SglangServer:
    """One run of a server; a restart makes a new one."""

    def __init__(
        self, launch: Launch, weights: Weights, *, number: int, gpus: tuple[str, ...], start: int = 0
    ) -> None:
        """Start it. Call from a thread that lives as long as the server should: PDEATHSIG is per thread.

        `number`: from 0, for people; `gpus`: its CUDA_VISIBLE_DEVICES, empty = what the parent sees;
        `start`: times that the pool has started servers again before.
        """
        self.number = number
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.client = AsyncSglang(self.url)
        self.started_at = time.monotonic()
        self.log_path = launch.log_folder / f"sglang-{number}.log"
        launch.log_folder.mkdir(parents=True, exist_ok=True)
        self._log_start = self.log_path.stat().st_size if self.log_path.exists() else 0
        seed = sampling_seed(launch.seed, launch.attempt, number, start)
        with self.log_path.open("ab") as output:
            self.process = subprocess.Popen(
                [*DIE_WITH_PARENT, *command_of(launch, weights, self.port, seed)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environment_of(launch, gpus),
                cwd=launch.image_folder,
            )

    def exit_code(self) -> int | None:
        """None while it runs."""
        return self.process.poll()

    def stage(self) -> str:
        """What the start is at, by its log."""
        for line in reversed(self.tail(TAIL_BYTES).splitlines()):
            for pattern, name in STAGES:
                if re.search(pattern, line):
                    return name + _percent(line)
        return "starting Python"

    def tail(self, num_bytes: int = 4096) -> str:
        """The end of this run's log."""
        with self.log_path.open("rb") as stream:
            stream.seek(max(self._log_start, self.log_path.stat().st_size - num_bytes))
            return stream.read().decode(errors="replace")

    def stop(self) -> None:
        """End it and its workers; idempotent. Blocks for up to STOP_GRACE_S."""
        family = self._family()
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(STOP_GRACE_S)
        self.process.kill()
        for child in family:
            with contextlib.suppress(psutil.Error):
                child.kill()  # psutil compares start times, so a reused pid is safe
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(10)

    def _family(self) -> list[psutil.Process]:
        """Its workers. After its own death they end by themselves."""
        try:
            return psutil.Process(self.process.pid).children(recursive=True)
        except psutil.Error:
            return []


def command_of(launch: Launch, weights: Weights, port: int, seed: int) -> list[str]:
    """The server's command line."""
    return [
        launch.python,
        *("-m", "sglang.launch_server"),
        *("--model-path", weights.folder),
        *("--weight-version", str(weights.policy_version)),
        *("--host", "127.0.0.1"),
        *("--port", str(port)),
        f"--random-seed={seed}",
        *launch.arguments,
    ]


def environment_of(launch: Launch, gpus: tuple[str, ...]) -> dict[str, str]:
    """The server's environment: ours, and where it finds its modules, our classes and the images."""
    path = [part for part in (launch.python_path, str(REPOSITORY)) if part]
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(path),
        "PYTHONUNBUFFERED": "1",
        "SGLANG_EXTERNAL_MM_PROCESSOR_PACKAGE": "training.sampler.sglang.processors",
        "SGLANG_EXTERNAL_MODEL_PACKAGE": "training.sampler.sglang.models",
        # Siblings of a group see the same first screenshot; one embedding is a few MB.
        "SGLANG_VLM_CACHE_SIZE_MB": os.environ.get("SGLANG_VLM_CACHE_SIZE_MB", "2048"),
        "DESKHAND_IMAGE_FOLDER": str(launch.image_folder),
        "NO_PROXY": "localhost,127.0.0.1," + os.environ.get("NO_PROXY", ""),
    }
    # It would report logprobs before the temperature.
    environment.pop("SGLANG_RETURN_ORIGINAL_LOGPROB", None)
    if gpus:
        environment["CUDA_VISIBLE_DEVICES"] = ",".join(gpus)
    return environment


def free_port() -> int:
    """A free TCP port of the loopback address."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def _percent(line: str) -> str:
    found = re.findall(r"(\d{1,3})%", line)
    return f" {found[-1]} %" if found else ""
