"""Machines that join an installation: network, name, checkout and data folder are their own. Needs root."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from testing.linked_network import Network
from testing.paths import REPOSITORY
from testing.private_installation import Instance

GONE = (ProcessLookupError, psutil.Error)
TOKEN = (
    "from django.contrib.auth.models import User; "
    "from webapp.worker_door.joined_hosts.joining import make_token; "
    "print(make_token(user=User.objects.first(), roles=('env', 'gpu'), team=None))"
)


@dataclass
class JoinedMachine:
    """A joined host behind a link."""

    name: str
    network: Network
    folder: Path
    server: Instance
    roles: str = "env"
    slots: int = 2
    variables: dict[str, str] = field(default_factory=dict)
    """Settings of its own."""
    hidden: Sequence[Path] = ()
    """Further folders of this machine that are not there for it; they have to exist."""
    process: subprocess.Popen[bytes] | None = field(default=None, init=False)

    def command(self, *arguments: str) -> list[str]:
        """A manage.py command there: own network, own name, own checkout; the server's data is hidden."""
        hide = [f"mount -t tmpfs none {folder}" for folder in (self.server.folder, *self.hidden)]
        begin = " && ".join([f"hostname {self.name}", *hide, 'exec "$@"'])
        alone = ["unshare", "--mount", "--uts", "sh", "-c", begin, "sh"]
        return self.network.inside(*alone, sys.executable, "manage.py", *arguments)

    @property
    def checkout(self) -> Path:
        return self.folder / "checkout"

    @property
    def data(self) -> Path:
        return self.folder / "var"

    @property
    def environment(self) -> dict[str, str]:
        keep = ("PATH", "HOME", "LANG", "VIRTUAL_ENV")
        inherited = {name: os.environ[name] for name in keep if name in os.environ}
        return inherited | self.variables | {"DESKHAND_DATA_DIR": str(self.data)}

    def join(self) -> None:
        """The running server, at its address for hosts."""
        token = self.server.manage("shell", "-c", TOKEN).split()[-1]
        self.checkout.mkdir(parents=True)
        self.checkout.chmod(0o755)  # the desk host goes on as another user
        packed = subprocess.run(["git", "archive", "HEAD"], cwd=REPOSITORY, check=True, capture_output=True)
        subprocess.run(["tar", "-x", "-C", str(self.checkout)], input=packed.stdout, check=True)
        for name in (".venv", "node_modules"):
            (self.checkout / name).symlink_to((REPOSITORY / name).resolve())
        url = "https://{DESKHAND_HOSTS_ADDRESS}:{DESKHAND_HOSTS_PORT}".format_map(self.server.env)
        command = self.command("join", "--server", url, "--roles", self.roles)
        subprocess.run(
            command, cwd=self.checkout, env=self.environment, input=f"{token}\n", text=True, check=True
        )

    def start(self) -> None:
        with (self.folder / "host.log").open("ab") as output:
            self.process = subprocess.Popen(
                self.command("host", "--slots", str(self.slots), "--quiet"),
                cwd=self.checkout,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def kill(self) -> None:
        """SIGKILL to all of it at one moment, as a power cut."""
        assert self.process is not None
        doomed = [self.process.pid, *(one.pid for one in processes_of(self.data))]
        for pid in doomed:
            with suppress(*GONE):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()

    def restart(self) -> None:
        self.kill()
        self.start()

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            self.process.wait(60)


def processes_of(data_dir: Path) -> list[psutil.Process]:
    """Processes whose data folder this is."""
    found = []
    for process in psutil.process_iter():
        with suppress(*GONE):
            if process.environ().get("DESKHAND_DATA_DIR") == str(data_dir):
                found.append(process)
    return found
