"""A policy server with the engine `sglang` for GPU benchmarks, as a process like the product's.

With the `tiny` model it runs on a CPU around the tests' stand-in, which only tries the benchmark itself.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import httpx
import psutil
import yaml

from workers.env.policy_client import PolicyClient

TOKEN = "benchmark"
REPOSITORY = Path(__file__).resolve().parents[2]
STAND_IN = REPOSITORY / "testing" / "training" / "sglang_stand_in"


def surroundings(*, tiny: bool) -> dict[str, str]:
    """Environment of the policy server: where SGLang is."""
    if tiny:
        return {"DESKHAND_SGLANG_PYTHON": sys.executable, "DESKHAND_SGLANG_PATH": str(STAND_IN)}
    known = ("DESKHAND_SGLANG_PYTHON", "DESKHAND_SGLANG_PATH")
    return {name: os.environ[name] for name in known if name in os.environ}


@dataclass(kw_only=True)
class PolicyProcess:
    """Use as a context manager; `start` waits until it is ready."""

    model: Path
    config: dict[str, Any]
    folder: Path
    tiny: bool = False
    environment: dict[str, str] = field(default_factory=dict)
    """Beside this process' own, e.g. DESKHAND_ENGINE_GPUS."""
    start_s: float = 0.0
    said: list[str] = field(default_factory=list)
    """What it was at while starting, each once."""
    left_behind: list[str] = field(default_factory=list)
    """Processes that outlived it."""

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        config, port_file = self.folder / "config.yaml", self.folder / "port"
        port_file.unlink(missing_ok=True)
        config.write_text(yaml.safe_dump(self.config))
        self.log = (self.folder / "policy.log").open("ab")
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-m", "training.sampler.server", "--model", str(self.model)),
                *("--config", str(config), "--port-file", str(port_file)),
            ],
            stdout=self.log,
            stderr=subprocess.STDOUT,
            env=os.environ
            | surroundings(tiny=self.tiny)
            | {"DESKHAND_POLICY_TOKEN": TOKEN}
            | self.environment,
            cwd=REPOSITORY,
        )
        started = time.monotonic()
        try:
            self._wait(port_file)
        except BaseException:
            self.__exit__()
            raise
        self.start_s = time.monotonic() - started
        return self

    def close(self) -> None:
        """End it and everything that it started; what does not end is in `left_behind`."""
        family = []
        with contextlib.suppress(psutil.Error):
            family = psutil.Process(self.process.pid).children(recursive=True)
        self.process.terminate()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
        _, alive = psutil.wait_procs(family, timeout=10)
        self.left_behind += [f"{process.pid} {process.name()}" for process in alive if _is_alive(process)]
        self.log.close()

    def __exit__(self, *_: object) -> None:
        self.close()

    def client(self) -> PolicyClient:
        """A connection; not shared between threads."""
        return PolicyClient(self.url, TOKEN, timeout_s=300.0)

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """A call with a JSON body, e.g. a step of a weight sync. Raises httpx.HTTPError."""
        answer = httpx.request(
            method, f"{self.url}{path}", headers={"Authorization": f"Bearer {TOKEN}"}, json=body, timeout=300,
            trust_env=False,
        )  # fmt: skip
        answer.raise_for_status()
        return answer.json()

    def ask(self, method: str, path: str, body: object = None) -> Any:
        """A bare call, e.g. GET /engine."""
        answer = httpx.request(
            method, f"{self.url}{path}", headers={"Authorization": f"Bearer {TOKEN}"}, timeout=300,
            trust_env=False, json=body,
        )  # fmt: skip
        answer.raise_for_status()
        return answer.json()

    def tail(self, num_bytes: int = 6000) -> str:
        """The ends of all its logs, for a failure's report."""
        logs = [self.folder / "policy.log", *sorted((self.folder / "logs").glob("sglang-*.log"))]
        return "\n".join(
            f"--- {log.name}\n{log.read_bytes()[-num_bytes:].decode(errors='replace')}"
            for log in logs
            if log.exists()
        )

    def _wait(self, port_file: Path) -> None:
        while True:
            if self.process.poll() is not None:
                raise RuntimeError(f"the policy server ended with code {self.process.returncode}")
            if port_file.exists():
                self.url = f"http://127.0.0.1:{port_file.read_text().strip()}"
                answer = httpx.get(
                    f"{self.url}/health", headers={"Authorization": f"Bearer {TOKEN}"}, timeout=60,
                    trust_env=False,
                )  # fmt: skip
                if answer.status_code == httpx.codes.OK:
                    return
                self._note(answer.json()["error"]["message"])
            time.sleep(0.25)

    def _note(self, words: str) -> None:
        stage = words.split(" (")[0]
        if not self.said or self.said[-1].split(" (")[0] != stage:
            print(f"   {words}", flush=True)
            self.said.append(words)


def _is_alive(process: psutil.Process) -> bool:
    """False for those that only wait for somebody to ask how they ended."""
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False
