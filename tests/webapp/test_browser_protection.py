"""Headers and origins that keep other sites away from a person's session."""

import subprocess
import sys

import pytest
from django.test import Client

from testing.live_client import communicator
from testing.paths import REPOSITORY
from webapp.lib.asgi.websocket_origin import is_own
from webapp.lib.environment_variables import make_private


def test_no_page_runs_a_script_that_is_not_ours(db):
    policy = Client().get("/login/")["Content-Security-Policy"]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["script-src"] == rules["default-src"] == "'self'"
    assert rules["object-src"] == rules["base-uri"] == rules["frame-ancestors"] == "'none'"


@pytest.mark.parametrize(
    ("origin", "host", "expected"),
    [
        ("http://localhost:8765", "localhost:8765", True),
        ("https://localhost", "localhost", True),
        ("http://localhost:9999", "localhost:8765", False),
        ("http://localhost", "localhost:8765", False),
        ("http://evil.example", "evil.example", False),
        ("null", "localhost", False),
        ("", "localhost", False),
        ("file://localhost", "localhost", False),
    ],
)
def test_a_socket_is_opened_by_our_own_pages_alone(origin, host, expected):
    assert is_own(origin, host) is expected


def test_an_origin_that_the_installation_trusts_may_open_one(settings):
    settings.CSRF_TRUSTED_ORIGINS = ["https://desk.example"]
    assert is_own("https://desk.example", "10.0.0.5:8765")


async def test_a_page_of_another_port_is_refused():
    connected, _ = await communicator(origin=b"http://localhost:9999").connect()
    assert not connected


def test_an_installation_behind_https_passes_the_check_of_django(tmp_path):
    checked = subprocess.run(
        [sys.executable, "manage.py", "check", "--deploy", "--fail-level", "WARNING"],
        cwd=REPOSITORY,
        env={"PATH": "/usr/bin:/bin", "DESKHAND_HTTPS": "1", "DESKHAND_DATA_DIR": str(tmp_path / "var")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stderr
    assert (tmp_path / "var").stat().st_mode & 0o777 == 0o700
    assert not [file for file in (tmp_path / "var").rglob("*") if file.stat().st_mode & 0o077]


def test_an_open_data_folder_is_closed(tmp_path):
    tmp_path.chmod(0o755)
    make_private(tmp_path)
    assert tmp_path.stat().st_mode & 0o777 == 0o700
