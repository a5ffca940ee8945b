"""Parts of an installation that stand behind a network: an env worker, and desktops with their env server.

They are the product's own programs, started in a namespace of their own; what they need of this machine
(PostgreSQL, Redis, HTTP) goes through the link, so a cut takes all of it at once.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import redis

from testing.linked_network import Network
from testing.watch_installation import wait_for
from webapp.lib.supervisor.ports import free_port
from workers.desktops.contract import EnvError
from workers.desktops.host.client import DeskHostClient

started = partial(wait_for, patience_s=120.0)
STOP_LIMIT_S = 60.0
FAR_PORT = 8100
FAR_SLOTS = 2
SILENT_S = 15.0
"""After so long without a call an env server closes an episode: its kind of lease."""


@dataclass
class Far:
    """What stands behind the link of one installation."""

    folder: Path
    network: Network
    environment: dict[str, str]
    """Of the installation's processes on this side."""
    redis_port: int
    worker_names: Callable[[], list[str]]
    """Of the workers that are online."""

    @property
    def socket(self) -> Path:
        return self.folder / "far.sock"

    @property
    def desk_host(self) -> DeskHostClient:
        """Of the desktops behind the link; asked over a unix socket, which no cut reaches."""
        return DeskHostClient(self.socket)

    @contextmanager
    def worker(self) -> Iterator[dict[str, Any]]:
        """An env worker whose database and broker are across the link. Yields changes of the config."""
        password = (self.folder / "secrets" / "redis_password").read_text()
        open_to(self.network.near, self.redis_port, password)
        across = {
            "REDIS_URL": f"redis://:{password}@{self.network.near}:{self.redis_port}/0",
            "DATABASE_URL": f"postgresql://deskhand@{self.network.near}/deskhand",
        }
        command = [sys.executable, "-m", "celery", "-q", "-A", "workers.app", "worker", "-Q", "env"]
        command += ["-n", "far@%h", "--without-gossip", "--without-mingle", "--pool=threads"]
        command += [f"--concurrency={FAR_SLOTS}", "--loglevel", "INFO"]
        log = self.folder / "far-worker.log"
        with running(self.network.inside(*command), log, self.environment | across):
            started("the env worker behind the link", lambda: "far@" in "".join(self.worker_names()))
            yield {}

    @contextmanager
    def desktops(self) -> Iterator[dict[str, Any]]:
        """Two env servers, one with its desk host behind the link. Yields changes of the config."""
        host = [sys.executable, "-m", "workers.desktops.host", "--state-dir", str(self.folder / "far")]
        host += ["--socket", str(self.socket), "--warm-limit", "1"]
        port = free_port()
        with ExitStack() as stack:
            start = self._starter(stack)
            start("far-deskhost", self.network.inside(*host))
            near_socket = self.folder / "run" / "deskhost.sock"
            start("near-server", env_server(near_socket, "127.0.0.1", port))
            started("the desk host behind the link", lambda: answers(self.desk_host))
            start("far-server", self._far_server)
            urls = [f"http://{self.network.far}:{FAR_PORT}", f"http://127.0.0.1:{port}"]
            started("the env servers", lambda: all(map(serves, urls)))
            yield {"remote": {"urls": urls, "token_secret": "env-server", "slots_per_url": 3}}

    def start_again(self, stack: ExitStack) -> None:
        """The env server behind the link, after it was killed."""
        self._starter(stack)("far-server", self._far_server)

    @property
    def _far_server(self) -> list[str]:
        return self.network.inside(*env_server(self.socket, self.network.far, FAR_PORT))

    def _starter(self, stack: ExitStack) -> Callable[[str, list[str]], None]:
        def start(name: str, command: list[str]) -> None:
            stack.enter_context(running(command, self.folder / f"{name}.log", self.environment))

        return start


def env_server(socket: Path, host: str, port: int) -> list[str]:
    command = [sys.executable, "-m", "workers.env_server", "--socket", str(socket), "--host", host]
    return [*command, "--port", str(port), "--ttl-s", str(SILENT_S)]


@contextmanager
def running(command: list[str], log: Path, environment: dict[str, str]) -> Iterator[None]:
    with open(log, "ab") as output:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment
        )
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def answers(client: DeskHostClient) -> bool:
    try:
        client.list()
    except EnvError:
        return False
    finally:
        client.close()
    return True


def serves(url: str) -> bool:
    """Whether somebody takes connections there; without a token it answers nothing more."""
    import httpx

    try:
        return httpx.get(f"{url}/health", timeout=2, trust_env=False).status_code in (200, 401)
    except httpx.TransportError:
        return False


def open_to(address: str, port: int, password: str) -> None:
    """Let the installation's Redis listen on the link as well; its password stays."""
    client = redis.Redis(port=port, password=password)
    client.config_set("bind", f"127.0.0.1 {address}")
    client.close()
