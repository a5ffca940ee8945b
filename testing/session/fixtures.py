"""Fixtures of tests with Django: private data folder, real Redis, chosen database, web server, desk host.

`DESKHAND_TEST_DB=postgres` runs the same tests on a PostgreSQL cluster that `testing.session.environment`
starts.
"""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from testing import loop_guard
from testing.servers.web_server_process import running_web_server
from testing.session.environment import ON_POSTGRES, REDIS_PASSWORD, REDIS_PORT, TEST_ROOT
from webapp.lib.supervisor.redis_server import redis_command

if TYPE_CHECKING:
    from workers.desktops.host.client import DeskHostClient

START_TIMEOUT_S = 60


def pytest_report_header() -> str:
    return f"database: {'postgres' if ON_POSTGRES else 'sqlite'}"


@pytest.fixture(autouse=True)
def no_database_on_event_loops() -> Iterator[None]:
    """A call of the database on an event loop fails the test, whatever became of it."""
    loop_guard.install()
    yield
    found = loop_guard.calls.copy()
    loop_guard.calls.clear()
    assert not found, f"{len(found)} calls of the database on an event loop, the first one:\n{found[0]}"


@pytest.fixture(scope="session", autouse=True)
def quickly_emptied_tables() -> None:
    """After each test that commits."""
    from django.test import TransactionTestCase

    from testing.session.emptied_tables import empty_tables

    TransactionTestCase._fixture_teardown = lambda _case: empty_tables()  # type: ignore[attr-defined]


@pytest.fixture(scope="session")
def django_db_modify_db_settings() -> None:
    """SQLite's tests use a file, as production does: threads and other processes see the same data."""
    from django.conf import settings

    database: dict[str, Any] = settings.DATABASES["default"]
    if database["ENGINE"].endswith("sqlite3"):
        database["TEST"]["NAME"] = str(TEST_ROOT / "test.sqlite3")


@pytest.fixture(scope="session", autouse=True)
def redis_server() -> Iterator[str]:
    """The URL of a real Redis of this session's own."""
    import redis

    command = redis_command(TEST_ROOT / "redis", REDIS_PORT, REDIS_PASSWORD, durable=False)
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    client = redis.Redis.from_url(os.environ["REDIS_URL"])
    deadline = time.monotonic() + START_TIMEOUT_S
    while True:
        try:
            client.ping()
            break
        except redis.ConnectionError:
            if process.poll() is not None or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
    yield os.environ["REDIS_URL"]
    client.close()
    process.terminate()
    process.wait(START_TIMEOUT_S)


@pytest.fixture
def redis_client(redis_server: str) -> Iterator[object]:
    """A client of an empty Redis."""
    import redis

    client = redis.Redis.from_url(redis_server)
    client.flushall()
    yield client
    client.close()


@pytest.fixture(scope="session")
def child_environment(django_db_setup: None, django_db_blocker: object) -> dict[str, str]:
    """The environment of a child process that shall use this session's test database and Redis."""
    from urllib.parse import quote

    from django.db import connections

    name = connections["default"].settings_dict["NAME"]
    if ON_POSTGRES:
        before, _, query = os.environ["DATABASE_URL"].partition("?")
        url = f"{before.rsplit('/', 1)[0]}/{quote(str(name))}?{query}"
    else:
        url = f"sqlite://{quote(str(name))}"
    return {**os.environ, "DATABASE_URL": url, "DJANGO_SETTINGS_MODULE": "webapp.settings"}


@pytest.fixture(scope="session")
def desk_client() -> "Iterator[DeskHostClient]":
    """Client of a desk host that lives as long as the test run. It cleans in place also on a busy machine."""
    from testing.desk_host_process import running_host

    folder = Path(tempfile.mkdtemp(prefix="dh-", dir="/tmp"))
    with running_host(folder, "--max-desktops", "6", "--slow-reset-s", "3600") as client:
        yield client
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def collected_static() -> None:
    """The files that pages load; WhiteNoise lists the folder when the server starts."""
    from django.core.management import call_command

    call_command("collectstatic", interactive=False, verbosity=0)


@pytest.fixture(scope="session")
def web_server(redis_server: str, child_environment: dict[str, str], collected_static: None) -> Iterator[str]:
    """The URL of a real uvicorn over the test database; use it together with `transactional_db`."""
    with running_web_server(child_environment, TEST_ROOT / "web.log") as url:
        yield url
