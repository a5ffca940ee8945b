"""Every service of compose and Kubernetes starts with what its image has: the files that its COPY lines give,
the packages that its requirement files pin, and no others. Its health checks then answer.
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from testing.image_services import Begun, Place, services, start
from testing.session.environment import ON_POSTGRES
from testing.set_up import set_up
from tests.infra.test_deployment_files import CONTAINERS
from webapp.lib.supervisor.ports import free_port

pytestmark = pytest.mark.skipif(ON_POSTGRES, reason="what an image has does not depend on the database")
SERVICES = services()
CHOSEN = [name for name in SERVICES if "/" not in name]
"""An override changes the stage; what it has more than the usual one is for programs, not for ours."""


@pytest.fixture(scope="module")
def built_help() -> None:
    """What the stage `help` makes, as set-up makes it here."""
    set_up("help")


@pytest.fixture(scope="module")
def place(
    child_environment: dict[str, str], redis_server: str, built_help: None, django_db_setup: None
) -> Iterator[Place]:
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


def test_every_service_starts_with_the_files_and_packages_of_its_image(place: Place):
    """Workers even without the files of pages. Kubernetes runs the same commands; its probes answer, too."""
    problems, begun = {}, dict[str, Begun]()
    first = ("prepare", "deskhost")
    with ExitStack() as running:
        for names in (first, [name for name in CHOSEN if name not in first]):
            now = {name: start(place, SERVICES[name], running) for name in names}
            problems |= {name: one.output() for name, one in now.items() if not one.comes_up()}
            begun |= now
        assert problems == {}
        for name, container in CONTAINERS.items():
            if name in begun:
                probes = [value for key, value in container.items() if key.endswith("Probe")]
                assert [probe for probe in probes if not begun[name].answers_probe(probe)] == [], name


def test_kubernetes_runs_commands_that_compose_runs():
    ours = {name: one for name, one in CONTAINERS.items() if one["image"].startswith("deskhand/")}
    assert {name for name in CHOSEN if name != "env-server"} <= set(ours)
    for name, container in ours.items():
        service = SERVICES[name]
        assert container["image"] == service.image
        command = tuple(container.get("command", service.stage.command))
        assert [_without_folders(command)] == [_without_folders(service.command)], name


def _without_folders(command: tuple[str, ...]) -> list[str]:
    return [
        word.rpartition("/")[2] if word.startswith("/") else word for word in command if word != "/desk/state"
    ][:3]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "missing", "said"),
    [
        ("prepare", "static", "collected"),
        ("prepare", "whitenoise", "No module named 'whitenoise'"),
        ("web", "templates", "TemplateDoesNotExist"),
        ("gpu-worker", "training", "No module named 'training"),
        ("gpu-worker", "redis", "No module named 'redis'"),
        ("env-worker", "workers", "workers"),
    ],
)
def test_a_service_whose_image_lacks_something_does_not_start(
    place: Place, name: str, missing: str, said: str
):
    with ExitStack() as running:
        begun = start(place, SERVICES[name], running, without=frozenset({missing}))
        assert not begun.comes_up()
        assert said in begun.output()


@pytest.mark.parametrize("name", [name for name in SERVICES if name not in CHOSEN])
def test_the_stage_of_an_override_has_all_that_the_usual_one_has(name: str):
    usual = SERVICES[name.partition("/")[0]]
    assert set(usual.stage.copies) <= set(SERVICES[name].stage.copies)
    assert set(usual.stage.requirements) <= set(SERVICES[name].stage.requirements)
    assert SERVICES[name].command == usual.command
