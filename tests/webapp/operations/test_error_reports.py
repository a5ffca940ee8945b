"""Logs as JSON and errors to a Sentry server, in processes with Django, as an installation has them."""

import gzip
import json
import os
import subprocess
import sys

import pytest

from testing.paths import REPOSITORY
from testing.servers.answering import Answer, answering

SET_UP = "import django, logging; django.setup()\nfrom training.log_lines import log_about\n"


def run(code, **variables):
    env = {**os.environ, "DJANGO_SETTINGS_MODULE": "webapp.settings", **variables}
    command = [sys.executable, "-c", code]
    return subprocess.run(command, env=env, cwd=REPOSITORY, capture_output=True, text=True, check=False)


def test_every_line_of_a_service_is_json_also_the_web_servers():
    code = (
        "import logging.config, uvicorn.config; logging.config.dictConfig(uvicorn.config.LOGGING_CONFIG)\n"
        f"{SET_UP}"
        "logging.getLogger('uvicorn.error').info('started')\n"
        "with log_about(trajectory_id=5): logging.getLogger('workers').warning('slow')\n"
    )
    lines = [json.loads(line) for line in run(code, DESKHAND_LOG_FORMAT="json").stderr.splitlines()]
    assert [(line["logger"], line["message"], line.get("trajectory_id")) for line in lines] == [
        ("uvicorn.error", "started", None), ("workers", "slow", 5),
    ]  # fmt: skip


def test_an_unknown_format_names_its_variable():
    assert "DESKHAND_LOG_FORMAT: 'xml' is no format of logs" in run(SET_UP, DESKHAND_LOG_FORMAT="xml").stderr


@pytest.fixture
def sentry():
    """(DSN of a server that takes envelopes, what came)."""
    came = []

    def take(request):
        is_packed = request.headers.get("Content-Encoding") == "gzip"
        came.append((gzip.decompress(request.body) if is_packed else request.body).decode())
        return Answer()

    with answering(take) as url:
        yield f"{url.replace('//', '//key@')}/1", came


BREAKS = f"""{SET_UP}
def work():
    policy_token = "swordfish"
    raise RuntimeError("the slot broke")
with log_about(experiment_id=2, trajectory_id=9):
    try:
        work()
    except RuntimeError:
        logging.getLogger("workers").exception("trajectory 9 broke")
"""


def test_an_error_reaches_the_server_with_its_ids_and_without_local_variables(sentry):
    pytest.importorskip("sentry_sdk")
    dsn, came = sentry
    done = run(BREAKS, DESKHAND_SENTRY_DSN=dsn, NO_PROXY="127.0.0.1", no_proxy="127.0.0.1")
    assert done.returncode == 0, done.stderr
    events = [json.loads(line) for text in came for line in text.splitlines() if '"exception"' in line]
    assert [event["tags"] for event in events] == [{"experiment_id": "2", "trajectory_id": "9"}]
    assert events[0]["release"].startswith("deskhand@")
    assert events[0]["exception"]["values"][0]["value"] == "the slot broke"
    assert "swordfish" not in "".join(came)


@pytest.mark.parametrize(
    ("before", "dsn", "said"),
    [
        (
            "import sys; sys.modules['sentry_sdk'] = None\n",
            "http://key@127.0.0.1:9/1",
            "requirements/sentry.txt",
        ),
        ("", "nonsense", "DESKHAND_SENTRY_DSN: "),
    ],
    ids=["client missing", "no address"],
)
def test_a_server_that_cannot_be_used_is_said_at_the_start(before, dsn, said):
    done = run(before + SET_UP, DESKHAND_SENTRY_DSN=dsn)
    assert done.returncode == 1
    assert said in done.stderr
