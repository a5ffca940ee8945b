"""Log lines as JSON: what they hold, and about what."""

import json
import logging
import subprocess
import sys
import threading

import pytest

from training.log_lines import JSON_START, JsonLines, LogFormat, ids_now, log_about

log = logging.getLogger("test_log_lines")


@pytest.fixture
def lines():
    """The lines that the log has had, parsed."""
    found = []

    class Keep(logging.Handler):
        def emit(self, record):
            text = self.format(record)
            assert text.startswith(JSON_START)
            assert "\n" not in text
            found.append(json.loads(text))

    handler = Keep()
    handler.setFormatter(JsonLines())
    log.addHandler(handler)
    yield found
    log.removeHandler(handler)


def test_lines_carry_what_the_work_is_about(lines):
    with log_about(experiment_id=7):
        with log_about(trajectory_id=3):
            log.warning("the %s broke\nin two", "desktop")
        log.error("after")
    log.error("outside")
    first, second, third = lines
    assert first.items() >= {
        "level": "warning", "logger": "test_log_lines", "message": "the desktop broke\nin two",
        "experiment_id": 7, "trajectory_id": 3,
    }.items()  # fmt: skip
    assert ("trajectory_id" in second, second["experiment_id"]) == (False, 7)
    assert "experiment_id" not in third


def test_an_error_has_its_traceback(lines):
    try:
        raise ValueError("broken")
    except ValueError:
        log.exception("it failed")
    assert lines[0]["error"].endswith("ValueError: broken")


def test_threads_are_about_their_own_work():
    seen = []
    with log_about(trajectory_id=1):
        thread = threading.Thread(target=lambda: seen.append(ids_now()))
        thread.start()
        thread.join()
    assert seen == [{}]


def test_a_format_that_does_not_exist_is_refused_with_those_that_do():
    assert (LogFormat.read(None), LogFormat.read("json")) == (LogFormat.TEXT, LogFormat.JSON)
    with pytest.raises(ValueError, match="'xml' is no format of logs: use text or json"):
        LogFormat.read("xml")


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_a_process_without_django_writes_it(log_format):
    code = (
        "import logging; from training.log_lines import *;"
        f"set_up_logging('%(levelname)s %(message)s', LogFormat('{log_format}')); logging.info('hello')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    if log_format == "text":
        assert done.stderr == "INFO hello\n"
    else:
        assert json.loads(done.stderr)["message"] == "hello"
