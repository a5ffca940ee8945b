"""Every service of the compose files starts with the files that its image's COPY lines give, and no others.

Processes are real, as are their database, Redis and desk host; only the container around them is missing.
"""

from __future__ import annotations

import os
import shutil
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
import yaml

from testing.image_files import Stage, lay_out, stages
from testing.paths import REPOSITORY
from testing.session.environment import ON_POSTGRES
from testing.set_up import set_up
from webapp.lib.supervisor.ports import free_port

pytestmark = pytest.mark.skipif(ON_POSTGRES, reason="which files there are does not depend on the database")
FILES = ("docker-compose.yml", "deploy/gpu.yml", "deploy/machines.yml")
COMPOSE, *OVERRIDES = (yaml.safe_load((REPOSITORY / name).read_text()) for name in FILES)
START_LIMIT_S = 150
OF_PAGES = frozenset({"static", "templates", "node_modules", "docs/site"})
"""Nothing that a worker imports reads them, also where its image has them."""


@dataclass(frozen=True, slots=True)
class Service:
    name: str
    stage: Stage
    command: tuple[str, ...]

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
            found[label] = Service(label, stage, tuple(service.get("command", stage.command)))
    return found


SERVICES = services()
CHOSEN = [name for name, service in SERVICES.items() if name == service.name.partition("/")[0]]
"""An override changes the stage; what it has more than the usual one is for programs, not for ours."""


@dataclass
class Place:
    """One data volume, and the containers that share it."""

    data: Path
    port: int
    env_server_port: int
    redis_url: str

    def start(self, service: Service, app: Path, log: Path) -> subprocess.Popen[bytes]:
        with log.open("wb") as output:
            return subprocess.Popen(
                self._command(service.command),
                cwd=app,
                env=self._environment(service),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )

    def _command(self, words: tuple[str, ...]) -> list[str]:
        changes = {"8700": str(self.port), "8100": str(self.env_server_port), "0.0.0.0": "127.0.0.1"}
        program, *rest = [changes.get(word, word.replace("/data", str(self.data))) for word in words]
        return [sys.executable, *([] if program == "python" else ["-m", program]), *rest]

    def _environment(self, service: Service) -> dict[str, str]:
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

    def is_up(self, service: Service) -> Callable[[], bool]:
        """What its health check asks."""
        if service.name == "web":
            return lambda: answers(f"http://127.0.0.1:{self.port}/login/")
        if service.name == "env-server":
            return lambda: accepts(("127.0.0.1", self.env_server_port))
        if service.name == "deskhost":
            return lambda: accepts(str(self.data / "run" / "deskhost.sock"))
        return self.beat_file(service).exists


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, TimeoutError, ConnectionError):
        return False


def accepts(address: str | tuple[str, int]) -> bool:
    family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
    with closing(socket.socket(family)) as client:
        try:
            client.connect(address)
        except OSError:
            return False
        return True


@pytest.fixture(scope="module")
def built_help() -> None:
    """What the stage `help` makes, as set-up makes it here."""
    set_up("help")


@pytest.fixture(scope="module")
def place(child_environment: dict[str, str], redis_server: str, built_help: None) -> Iterator[Place]:
    """A data volume with the tables of the session's database, so that nothing has to be migrated."""
    data = Path(tempfile.mkdtemp(prefix="dhi-", dir="/tmp"))
    data.chmod(0o755)  # the desk host goes on as a user of its own
    (data / "run").mkdir()
    made = unquote(urlsplit(child_environment["DATABASE_URL"]).path)
    with (
        closing(sqlite3.connect(made)) as source,
        closing(sqlite3.connect(data / "deskhand.sqlite3")) as copy,
    ):
        source.backup(copy)
    yield Place(data, free_port(), free_port(), redis_server.removesuffix("/0") + "/1")
    shutil.rmtree(data, ignore_errors=True)


def test_every_service_starts_with_the_files_of_its_image(place: Place):
    """Workers even without those of pages."""
    problems = {}
    first = ("prepare", "deskhost")
    with ExitStack() as running:
        for names in (first, [name for name in CHOSEN if name not in first]):
            begun = [start(place, SERVICES[name], running) for name in names]
            problems |= {one.service.name: one.output() for one in begun if not one.comes_up(place)}
    assert problems == {}


@pytest.mark.parametrize(
    ("name", "missing", "said"),
    [
        pytest.param("prepare", "static", "collected", marks=pytest.mark.slow),
        pytest.param("web", "templates", "TemplateDoesNotExist", marks=pytest.mark.slow),
        ("gpu-worker", "training", "No module named 'training"),
        ("env-worker", "workers", "workers"),
    ],
)
def test_a_service_whose_image_lacks_a_folder_does_not_start(
    place: Place, name: str, missing: str, said: str
):
    with ExitStack() as running:
        begun = start(place, SERVICES[name], running, without=frozenset({missing}))
        assert not begun.comes_up(place)
        assert said in begun.output()


@pytest.mark.parametrize("name", [name for name in SERVICES if name not in CHOSEN])
def test_the_stage_of_an_override_has_all_that_the_usual_one_has(name: str):
    usual = SERVICES[name.partition("/")[0]]
    assert set(usual.stage.copies) <= set(SERVICES[name].stage.copies)
    assert SERVICES[name].command == usual.command


@dataclass
class Begun:
    service: Service
    process: subprocess.Popen[bytes]
    log: Path

    def comes_up(self, place: Place) -> bool:
        """False once it has ended with an error, or answers with one."""
        deadline = time.monotonic() + START_LIMIT_S
        if self.service.name == "prepare":
            is_done = self.process.wait(START_LIMIT_S) == 0
            return is_done and (place.data / "static" / "img" / "favicon.svg").exists()
        is_up = place.is_up(self.service)
        while not is_up():
            has_failed = "Internal Server Error" in self.output() or "Traceback" in self.output()
            if self.process.poll() is not None or has_failed or time.monotonic() > deadline:
                return False
            time.sleep(0.2)
        return True

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
    place: Place,
    service: Service,
    running: ExitStack,
    *,
    without: frozenset[str] = frozenset(),
) -> Begun:
    app = Path(tempfile.mkdtemp(prefix=f"{service.name}-", dir=place.data))
    app.chmod(0o755)
    lay_out(service.stage, app, without=without if service.is_of_pages else without | OF_PAGES)
    log = app.with_suffix(".log")
    place.beat_file(service).unlink(missing_ok=True)
    if service.name == "prepare":
        shutil.rmtree(place.data / "static", ignore_errors=True)
    begun = Begun(service, place.start(service, app, log), log)
    running.callback(begun.end)
    return begun
