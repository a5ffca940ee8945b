"""The services of the compose files as processes: with the files and packages of their images, and no others.

They are real, as are their database, Redis and desk host; only the container around them is missing.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from testing.image_environment import make_environment, requirements_of
from testing.image_files import Stage, lay_out, stages
from testing.paths import REPOSITORY

FILES = ("docker-compose.yml", "deploy/gpu.yml", "deploy/machines.yml")
COMPOSE, *OVERRIDES = (yaml.safe_load((REPOSITORY / name).read_text()) for name in FILES)
START_LIMIT_S = 150
OF_PAGES = frozenset({"static", "templates", "node_modules", "docs/site"})
"""Nothing that a worker imports reads them, also where its image has them."""
BROKEN = ("Internal Server Error", "Traceback")


@dataclass(frozen=True, slots=True)
class Service:
    name: str
    image: str
    stage: Stage
    command: tuple[str, ...]
    health_check: tuple[str, ...]
    """Its words, CMD or CMD-SHELL first; none where it ends by itself."""

    @property
    def is_of_pages(self) -> bool:
        return self.command[:1] == ("uvicorn",) or self.command[2:3] == ("up",)


def services() -> dict[str, Service]:
    """Of all compose files, by name; those of an override behind a slash."""
    found = {}
    for file, overrides in zip(FILES, ({}, *OVERRIDES), strict=True):
        for name, service in COMPOSE["services"].items():
            changes = overrides.get("services", {}).get(name, {}) if overrides else service
            if "build" not in changes:
                continue
            dockerfile = stages(REPOSITORY / service["build"]["dockerfile"])
            stage = dockerfile[changes["build"]["target"]]
            label = f"{name}/{Path(file).stem}" if overrides else name
            command = tuple(service.get("command", stage.command))
            check = tuple(service.get("healthcheck", {}).get("test", ()))
            found[label] = Service(label, changes["image"], stage, command, check)
    return found


@dataclass
class Place:
    """One data volume, and the containers that share it."""

    data: Path
    port: int
    env_server_port: int
    redis_url: str
    pythons: dict[frozenset[str], Path] = field(default_factory=dict)

    def python(self, packages: frozenset[str]) -> Path:
        """Of an environment with these packages; made once."""
        if packages not in self.pythons:
            folder = Path(tempfile.mkdtemp(prefix="venv-", dir=self.data))
            folder.chmod(0o755)
            self.pythons[packages] = make_environment(packages, folder)
        return self.pythons[packages]

    def words(self, words: tuple[str, ...], python: Path) -> list[str]:
        """A command of a container as it is here."""
        changes = {"8700": str(self.port), "8100": str(self.env_server_port), "0.0.0.0": "127.0.0.1"}
        program, *rest = [changes.get(word, self._here(word)) for word in words]
        is_python = program in ("python", "uvicorn", "celery")
        return [str(python), *(["-m", program] if program != "python" else []), *rest] if is_python else words

    def _here(self, word: str) -> str:
        here = word.replace("/data/", f"{self.data}/").replace("/desk/host", f"{self.data}/run/deskhost")
        return here.replace(":8700", f":{self.port}")

    def environment(self, service: Service) -> dict[str, str]:
        kept = {key: os.environ[key] for key in ("PATH", "HOME", "LANG") if key in os.environ}
        return kept | {
            "DESKHAND_DATA_DIR": str(self.data),
            "DESKHAND_NODE_MODULES": str((REPOSITORY / "node_modules").resolve()),
            "DJANGO_SETTINGS_MODULE": "webapp.settings",
            "REDIS_URL": self.redis_url,
            "DESKHAND_BEAT_FILE": str(self.beat_file(service)),
            "PYTHONUNBUFFERED": "1",
        }

    def beat_file(self, service: Service) -> Path:
        return self.data / f"{service.name.replace('/', '-')}.beat"

    def may_be_up(self, service: Service) -> Callable[[], bool]:
        """A cheap look, before its health check is asked."""
        if service.name == "web":
            return lambda: answers(f"http://127.0.0.1:{self.port}/login/")
        if service.name == "env-server":
            return lambda: accepts(("127.0.0.1", self.env_server_port))
        if service.name == "deskhost":
            return lambda: accepts(str(self.data / "run" / "deskhost.sock"))
        return self.beat_file(service).exists


def answers(url: str) -> bool:
    """Whether it is there, with a 200."""
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, TimeoutError, ConnectionError):
        return False


def accepts(address: str | tuple[str, int]) -> bool:
    """Whether a server listens there."""
    family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
    with closing(socket.socket(family)) as client:
        try:
            client.connect(address)
        except OSError:
            return False
        return True


@dataclass
class Begun:
    """A service that was started."""

    service: Service
    place: Place
    python: Path
    process: subprocess.Popen[bytes]
    log: Path

    def comes_up(self) -> bool:
        """Until its health check answers; False once it has ended with an error, or answers with one."""
        deadline = time.monotonic() + START_LIMIT_S
        if self.service.name == "prepare":
            is_done = self.process.wait(START_LIMIT_S) == 0
            return is_done and (self.place.data / "static" / "img" / "favicon.svg").exists()
        may_be_up = self.place.may_be_up(self.service)
        while not may_be_up():
            has_failed = any(word in self.output() for word in BROKEN)
            if self.process.poll() is not None or has_failed or time.monotonic() > deadline:
                return False
            time.sleep(0.2)
        return not self.service.health_check or self.passes(self.service.health_check)

    def passes(self, check: tuple[str, ...]) -> bool:
        """Whether a health check of a container succeeds here."""
        form, *words = check
        environment = self.place.environment(self.service)
        if form == "CMD-SHELL":
            words = ["sh", "-c", words[0].replace("$$", "$")]
        command = self.place.words(tuple(words), self.python)
        found = subprocess.run(command, env=environment, capture_output=True, timeout=60, check=False)
        if found.returncode:
            with self.log.open("ab") as log:
                log.write(b"health check: " + found.stdout + found.stderr)
        return found.returncode == 0

    def answers_probe(self, probe: dict[str, Any]) -> bool:
        """The same of a probe of Kubernetes."""
        if "httpGet" in probe:
            return answers(f"http://127.0.0.1:{self.place.port}{probe['httpGet']['path']}")
        return self.passes(("CMD", *probe["exec"]["command"]))

    def output(self) -> str:
        return self.log.read_text(errors="replace")[-6000:]

    def end(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def start(
    place: Place, service: Service, running: ExitStack, *, without: frozenset[str] = frozenset()
) -> Begun:
    """Begin it, but for the COPY lines or packages in `without`; `running` ends it."""
    app = Path(tempfile.mkdtemp(prefix=f"{service.name}-", dir=place.data))
    app.chmod(0o755)
    lay_out(service.stage, app, without=without if service.is_of_pages else without | OF_PAGES)
    log = app.with_suffix(".log")
    place.beat_file(service).unlink(missing_ok=True)
    if service.name == "prepare":
        shutil.rmtree(place.data / "static", ignore_errors=True)
    python = place.python(frozenset(requirements_of(service.stage) - without))
    if service.name == "deskhost" and os.geteuid() == 0:
        python = Path(sys.executable)  # it goes on as another user, who cannot follow links to root's folders
    with log.open("wb") as output:
        process = subprocess.Popen(
            place.words(service.command, python),
            cwd=app,
            env=place.environment(service),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
    begun = Begun(service, place, python, process, log)
    running.callback(begun.end)
    return begun
