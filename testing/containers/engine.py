"""The compose project of a test or benchmark: its own checkout, passwords, port, images and volumes."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import yaml

from testing.paths import REPOSITORY
from webapp.lib.supervisor.ports import free_port

WAIT_S = 900
"""Until all services are healthy, also where the machine has other work."""
BUILD_S = 5400
ATTACHED_S = 10
STOP_S = 120
LEAST_COMPOSE = (2, 24)
WITH_CPU_SECONDS = """
import resource, subprocess, sys
code = subprocess.call(sys.argv[1:])
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print("CPU seconds:", round(used.ru_utime + used.ru_stime, 1))
sys.exit(code)
"""
"""Entry point of `prepare`: an ended container no longer says what it used."""


class NoEngine(Exception):
    """Raised where no containers can be run; the message says what is missing."""


class CommandFailed(Exception):
    """Raised when the engine refuses; the message holds the end of what it said."""


def missing() -> str:
    """Why there is no engine here; empty when there is one."""
    if shutil.which("docker") is None:
        return "docker is not installed"
    found = _ask("docker", "compose", "version", "--short")
    if not found:
        return "docker has no compose plugin"
    if tuple(int(part) for part in found.lstrip("v").split(".")[:2]) < LEAST_COMPOSE:
        return f"docker compose {found} is older than 2.24"
    return "" if _ask("docker", "info", "--format={{.ServerVersion}}") else "no docker daemon answers"


def versions() -> str:
    engine = _ask("docker", "info", "--format={{.ServerVersion}}")
    return f"Docker {engine}, Compose {_ask('docker', 'compose', 'version', '--short')}"


def _ask(*words: str) -> str:
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def docker(*words: str, limit_s: float = 300, folder: Path | None = None) -> str:
    """What the command wrote. Raises CommandFailed."""
    return _run(["docker", *words], limit_s, folder)


def _run(command: list[str], limit_s: float, folder: Path | None) -> str:
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=limit_s, check=False
        )
    except subprocess.TimeoutExpired as late:
        raise CommandFailed(f"{' '.join(command)}: not done after {limit_s:.0f} s") from late
    if done.returncode:
        raise CommandFailed(f"{' '.join(command)}: {(done.stderr or done.stdout)[-4000:]}")
    return done.stdout


@dataclass(kw_only=True)
class Checkout:
    """The files of one commit, and the images built of them."""

    folder: Path
    tag: str

    def override(self) -> Path:
        """Names images of its own, so that no other installation's change."""
        services = yaml.safe_load((self.folder / "docker-compose.yml").read_text())["services"]
        own = {
            name: {
                "image": f"{service['image'].replace('deskhand/', 'deskhand-test/')}:{self.tag}",
                "build": {"network": "host"},
            }
            for name, service in services.items()
            if "build" in service and "profiles" not in service
        }
        own["prepare"]["entrypoint"] = ["python", "-c", WITH_CPU_SECONDS]
        file = self.folder / "test-images.yml"
        file.write_text(yaml.safe_dump({"services": own}))
        return file


def checkout(folder: Path, commit: str, tag: str) -> Checkout:
    """Of a commit, or with "" of the working tree as git sees it."""
    folder.mkdir(parents=True)
    git = ["git", "-C", str(REPOSITORY)]
    if not commit:
        commit = _run([*git, "stash", "create"], 60, None).strip() or "HEAD"
    archive = subprocess.run([*git, "archive", commit], capture_output=True, check=True).stdout
    subprocess.run(["tar", "x", "-C", folder], input=archive, check=True)
    return Checkout(folder=folder, tag=tag)


@dataclass(kw_only=True)
class Site:
    """One compose project, seen by what tests and benchmarks ask of any installation."""

    checkout: Checkout
    project: str
    settings: dict[str, str]
    """What .env holds."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.settings['DESKHAND_PORT']}"

    @property
    def credentials(self) -> tuple[str, str]:
        """Of the first login, as `prepare` wrote it."""
        words = self.compose("exec", "-T", "web", "cat", "/data/first-login.txt").split()
        return words[1], words[3]

    @property
    def env(self) -> dict[str, str]:
        """Its database as this machine reaches it: by the address of the container."""
        password = self.settings["POSTGRES_PASSWORD"]
        return {"DATABASE_URL": f"postgresql://deskhand:{password}@{self.address('postgres')}:5432/deskhand"}

    @property
    def folder(self) -> Path:
        """The volume of its data; only root may read it."""
        return Path(docker("volume", "inspect", "--format={{.Mountpoint}}", f"{self.project}_data").strip())

    def compose(self, *words: str, limit_s: float = 300) -> str:
        return docker(*self._words(), *words, limit_s=limit_s, folder=self.checkout.folder)

    def _words(self) -> list[str]:
        here = self.checkout
        files = ["-f", str(here.folder / "docker-compose.yml"), "-f", str(here.override())]
        env_file = here.folder / ".env"
        if not env_file.exists():
            env_file.write_text("".join(f"{key}={text}\n" for key, text in self.settings.items()))
            env_file.chmod(0o600)
        return ["compose", "-p", self.project, *files]

    def manage(self, *arguments: str, timeout_s: float = 300) -> str:
        return self.compose("exec", "-T", "web", "python", "manage.py", *arguments, limit_s=timeout_s)

    def build(self) -> None:
        self.compose("--progress=plain", "build", limit_s=BUILD_S)

    def up(self) -> None:
        """Until each service is healthy."""
        self.compose("up", "--wait", f"--wait-timeout={WAIT_S}", limit_s=WAIT_S + 60)

    def interrupt(self) -> float:
        """Ctrl-C in a terminal where `docker compose up` shows the logs; seconds until that ended."""
        command = ["docker", *self._words(), "up"]
        with tempfile.TemporaryFile() as output:
            shown = subprocess.Popen(
                command, cwd=self.checkout.folder, stdout=output, stderr=output, start_new_session=True
            )
            time.sleep(ATTACHED_S)
            began = time.monotonic()
            shown.send_signal(signal.SIGINT)
            shown.wait(STOP_S)
            return time.monotonic() - began

    def down(self) -> None:
        """With the volumes."""
        self.compose("down", "--volumes", "--remove-orphans")

    def services(self) -> list[str]:
        """Those that stay up."""
        return sorted(row["Service"] for row in self.rows() if row["State"] == "running")

    def rows(self) -> list[dict[str, Any]]:
        """Of `compose ps`, ended ones too."""
        lines = self.compose("ps", "--all", "--format=json").splitlines()
        return [json.loads(line) for line in lines if line.strip()]

    def container(self, service: str) -> str:
        """Its name: asking Compose for it again and again would cost a core."""
        return f"{self.project}-{service}-1"

    def state(self, service: str) -> dict[str, Any]:
        """What the engine knows of its container."""
        found: dict[str, Any] = json.loads(docker("inspect", self.container(service)))[0]
        return found["State"] | {"RestartCount": found["RestartCount"]}

    def prepared(self) -> dict[str, float]:
        """How long `prepare` took, and what it used of the cores that it shares."""
        state = self.state("prepare")
        assert state["ExitCode"] == 0
        times = (state[key][:23] + "+00:00" for key in ("StartedAt", "FinishedAt"))
        began, ended = map(datetime.fromisoformat, times)
        (used,) = re.findall(r"CPU seconds: ([0-9.]+)", self.compose("logs", "--no-color", "prepare"))
        return {"prepare_s": round((ended - began).total_seconds(), 1), "prepare_cpu_s": float(used)}

    def address(self, service: str) -> str:
        words = "--format={{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}"
        return docker("inspect", words, self.container(service)).strip()

    def is_healthy(self, service: str) -> bool:
        state = self.state(service)
        return bool(state["Running"]) and state.get("Health", {}).get("Status") == "healthy"

    def wait_healthy(self, service: str, limit_s: float = 300) -> float:
        """Seconds until then. Raises TimeoutError with the end of its log."""
        started = time.monotonic()
        while not self.is_healthy(service):
            if time.monotonic() - started > limit_s:
                log = self.compose("logs", "--no-color", "--tail=30", service)
                raise TimeoutError(f"{service} is not healthy after {limit_s:.0f} s:\n{log}")
            time.sleep(0.5)
        return time.monotonic() - started

    def crash(self, service: str) -> None:
        """SIGKILL to its main process, which the engine takes for a crash and not for a stop by hand.

        Under an init of the engine's own this comes from inside the container. A first process without one
        hears no SIGKILL from inside, so that comes from a container that sees all processes.
        """
        inside = "for pid in $(cat /proc/1/task/1/children); do kill -9 $pid; done"
        own = docker("inspect", "--format={{.HostConfig.Init}}", self.container(service)).strip()
        if own == "true":
            with suppress(CommandFailed):  # the shell may end with its container
                docker("exec", "--user=0", self.container(service), "sh", "-c", inside)
            return
        image = docker("inspect", "--format={{.Image}}", self.container(service)).strip()
        pid = str(self.state(service)["Pid"])
        words = ["--rm", "--pid=host", "--user=0", "--entrypoint=sh", image, "-c", f"kill -9 {pid}"]
        docker("run", *words)


@contextmanager
def site(first: Checkout) -> Iterator[Site]:
    """With passwords of `deploy/make-env`; nothing of it is left afterwards but its images."""
    subprocess.run([first.folder / "deploy" / "make-env"], check=True, capture_output=True)
    lines = (first.folder / ".env").read_text().splitlines()
    settings = dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))
    settings |= {"DESKHAND_PORT": str(free_port()), "TORCH_INDEX": os.environ.get("TORCH_INDEX", "")}
    (first.folder / ".env").unlink()
    made = Site(checkout=first, project=f"deskhand-test-{os.getpid()}", settings=settings)
    try:
        yield made
    finally:
        made.down()


@contextmanager
def folder_of_checkouts() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="deskhand-containers-") as folder:
        yield Path(folder)


def image_gb(name: str) -> float:
    return round(int(docker("image", "inspect", "--format={{.Size}}", name)) / 1e9, 2)
