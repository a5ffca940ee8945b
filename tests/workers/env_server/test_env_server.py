"""The env server whatever its clients speak: its token, its command, and desktops that come back."""

import os
import signal
import subprocess
import sys
import threading
import time
import urllib.error

import pytest

from testing.workers.env_server_client import Client, posted
from testing.workers.env_server_thread import TOKEN, application, episodes_over, serving
from tests.workers.conftest import ROOT
from webapp.lib.supervisor.ports import free_port
from workers.env_server.__main__ import main as env_server_main
from workers.env_server.dialects.registry import DIALECTS

pytestmark = pytest.mark.desktop

COLOUR = "first-desk/colour/0000"


def test_a_silent_episode_is_closed_and_its_desktop_given_back(desk_client):
    episodes = episodes_over(desk_client, ttl_s=2)
    with serving(application(episodes, token="")) as url:
        client = Client(url)
        client.good("/openenv/reset", {"task_id": COLOUR})
        (held,) = episodes.held()
        desktop = held.environment.desktop_id
        for _ in range(1200):
            if client.good("/health")["episodes"] == 0:
                break
            threading.Event().wait(0.05)
        assert client.ask(f"/openenv/state?episode_id={held.episode_id}")[0] == 404
    leased = [row.info.desktop_id for row in desk_client.list() if row.lease_id]
    assert desktop not in leased


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer wrong"}, {"x-secret-token": "wrong"}])
def test_without_the_token_nothing_is_answered(server, headers):
    status, answer, _ = Client(server, **headers).ask("/health")
    assert (status, answer["code"]) == (401, "unauthorised")
    assert Client(f"{server}/token/wrong").ask("/health")[0] == 401
    assert Client(server, Authorization=f"Bearer {TOKEN}").ask("/health")[0] == 200


def test_the_command_serves_with_a_token_of_its_own_and_gives_everything_back(desk_client, short_dir):
    port = free_port()
    command = [sys.executable, "-m", "workers.env_server", "--socket", desk_client.socket_path]
    command += ["--port", str(port), "--secrets-dir", str(short_dir / "secrets"), "--screen", "512x384"]
    process = subprocess.Popen(command, cwd=ROOT, env={**os.environ, "DJANGO_SETTINGS_MODULE": ""})
    try:
        client = Client(f"http://127.0.0.1:{port}")
        for _ in range(1200):
            assert process.poll() is None
            try:
                assert client.ask("/health")[0] == 401
                break
            except urllib.error.URLError:
                time.sleep(0.1)
        token = (short_dir / "secrets" / "env-server").read_text()
        client = Client(f"http://127.0.0.1:{port}/token/{token}")
        held = {row.lease_id for row in desk_client.list()}
        client.good("/openenv/reset", {"task_id": COLOUR})
        assert {row.lease_id for row in desk_client.list()} - held
    finally:
        process.terminate()
        assert process.wait(60) in (0, -signal.SIGTERM)
    assert not {row.lease_id for row in desk_client.list()} - held - {""}


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--host", "0.0.0.0", "--no-token"], "127.0.0.1 only"),
        (["--no-token"], "the desk host does not answer"),
    ],
)
def test_the_command_says_why_it_cannot_start(short_dir, options, why, capsys):
    arguments = ["--socket", str(short_dir / "none"), "--secrets-dir", str(short_dir), *options]
    assert env_server_main(arguments) == 1
    assert why in capsys.readouterr().err


PATHS = sorted(
    path
    for dialect in DIALECTS
    for method, path in (*dialect.routes, *dialect.waiting_routes)
    if method == "POST" and "{" not in path
)
HOSTILE = [
    b"[" * 100_000, b'{"a": ' * 100_000, b'{"index": NaN}', b'{"max_turns": 1e400}',
    b'{"task_id": "\\ud800"}',
    b"\xff", b"[]", b"9" * 9000, b'{"a": ' + b"9" * 9000 + b"}",
]  # fmt: skip


@pytest.mark.parametrize("body", HOSTILE, ids=lambda body: ascii(body[:16]))
@pytest.mark.parametrize("path", PATHS)
def test_what_no_client_sends_is_refused_by_every_protocol(server, episodes, path, body):
    status, answer = posted(server, path, body)
    assert (status, answer["code"]) == (400, "bad_request"), answer
    assert len(episodes) == 0
