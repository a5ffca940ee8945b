"""Fixtures of the browser tests: people, signed-in pages, a model folder that pre-flight accepts."""

import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from playwright.sync_api import Browser, BrowserContext, Page, expect

from testing import loop_guard
from testing.browser.people import People
from testing.browser.people_at_desktops import EnvWorker
from testing.factories import make_task, make_task_set, make_team, make_user
from testing.model_folders import write_model_folder
from webapp.accounts.models import Role
from workers.desktops.host.client import DeskHostClient

CHROMIUM_FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
TIMEOUT_MS = 45_000
"""Two noisy cores run the browser, the server and the test."""


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args: dict[str, object]) -> dict[str, object]:
    """Debian's Chromium; as root its own sandbox cannot start."""
    loop_guard.exempt_main_thread()
    return {**browser_type_launch_args, "executable_path": shutil.which("chromium"), "args": CHROMIUM_FLAGS}


@pytest.fixture
def people(transactional_db: None) -> People:
    team = make_team()
    return People(team, make_user(Role.OPERATOR, team=team), make_user(Role.VIEWER, team=team))


@pytest.fixture
def sign_in(transactional_db: None, web_server: str, browser: Browser) -> Iterator[Callable[[User], Page]]:
    """Opens a page in a browser of that user's own; script errors and foreign requests fail the test."""
    problems: list[str] = []
    contexts: list[BrowserContext] = []
    expect.set_options(timeout=TIMEOUT_MS)

    def open_page(user: User) -> Page:
        client = Client()
        client.force_login(user)
        name = settings.SESSION_COOKIE_NAME
        context = browser.new_context(base_url=web_server)
        contexts.append(context)
        context.add_cookies([{"name": name, "value": client.cookies[name].value, "url": web_server}])
        page = context.new_page()
        page.set_default_timeout(TIMEOUT_MS)
        page.on("pageerror", lambda error: problems.append(f"script error: {error}"))
        page.on("console", lambda message: _note_refused_script(message.text, problems))
        page.on("request", lambda request: _note_foreign(request.url, web_server, problems))
        return page

    yield open_page
    for context in contexts:
        context.close()
    _wait_for_the_servers_queries()
    assert problems == []


def _wait_for_the_servers_queries(limit_s: float = 60) -> None:
    """Requests of a closed page go on in the server, and PostgreSQL's TRUNCATE deadlocks with them."""
    if connection.vendor != "postgresql":
        return
    busy = "select count(*) from pg_stat_activity where datname = current_database() and state <> 'idle'"
    deadline, quiet = time.monotonic() + limit_s, 0
    while quiet < 3 and time.monotonic() < deadline:
        with connection.cursor() as cursor:
            cursor.execute(f"{busy} and pid <> pg_backend_pid()")
            quiet = quiet + 1 if cursor.fetchone() == (0,) else 0
        time.sleep(0.05)


def _note_refused_script(text: str, problems: list[str]) -> None:
    if "Content Security Policy" in text:
        problems.append(text)


def _note_foreign(url: str, server: str, problems: list[str]) -> None:
    host = server.removeprefix("http://")
    if not url.startswith(("data:", "blob:")) and url.split("/")[2] != host:
        problems.append(f"request to another host: {url}")


@pytest.fixture
def env_worker(
    desk_client: DeskHostClient, people: People, monkeypatch: pytest.MonkeyPatch
) -> Iterator[EnvWorker]:
    settings.DESKHOST_SOCKET = desk_client.socket_path
    worker = EnvWorker(desk_client)
    yield worker
    worker.stop()


@pytest.fixture
def launchable(transactional_db: None) -> Iterator[str]:
    """What the presets need to pass pre-flight: the task set and a model folder, whose name this is."""
    task_set = make_task_set("first-desk")
    for number in range(12):
        family = ("menu", "note", "colour")[number % 3]
        make_task(task_set=task_set, family=family, split="heldout" if number % 2 else "train")
    folder = Path(settings.DATA_DIR) / "model-of-the-test"
    write_model_folder(folder, "qwen3_vl")
    yield folder.name
    shutil.rmtree(folder)
