"""A gpu worker with a host name, a data folder and perhaps a network of its own. Needs root."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import psutil

from testing.linked_network import Network
from testing.private_installation import REPOSITORY, Instance


class GpuHost:
    """It works on the Redis and database that its variables name; or on the control's."""

    def __init__(
        self,
        name: str,
        folder: Path,
        control: Instance,
        variables: Mapping[str, str],
        network: Network | None = None,
    ) -> None:
        self.name, self.folder = name, folder
        self.network = network
        self._environment = {
            **control.environment,
            "DESKHAND_DATA_DIR": str(folder),
            "DATABASE_URL": control.env.get("DATABASE_URL", f"sqlite://{control.folder}/deskhand.sqlite3"),
            **variables,
        }

    def start(self) -> None:
        self.folder.mkdir(exist_ok=True)
        up = [sys.executable, "manage.py", "up", "--quiet", "--gpu-workers", "1"]
        up += ["--without", "web", "env", "deskhost", "dispatcher"]
        command = ["unshare", "--uts", "sh", "-c", f'hostname {self.name} && exec "$@"', "sh", *up]
        with (self.folder / "up.log").open("ab") as output:
            self._process = subprocess.Popen(
                self.network.inside(*command) if self.network else command,
                cwd=REPOSITORY,
                env=self._environment,
                stdout=output,
                stderr=output,
            )

    def kill(self) -> None:
        """SIGKILL to all of it at one moment, as a power cut."""
        for process in psutil.process_iter():
            try:
                if process.environ().get("DESKHAND_DATA_DIR") == str(self.folder):
                    process.send_signal(signal.SIGKILL)
            except psutil.Error:
                continue
        self._process.wait()


@contextmanager
def running(host: GpuHost) -> Iterator[GpuHost]:
    """Killed at the end."""
    host.start()
    try:
        yield host
    finally:
        host.kill()


def redis_of(control: Instance) -> dict[str, str]:
    """The control's own Redis, for hosts of its network."""
    password = (control.folder / "secrets" / "redis_password").read_text().strip()
    return {"REDIS_URL": f"redis://:{password}@127.0.0.1:{control.redis_port}/0"}
