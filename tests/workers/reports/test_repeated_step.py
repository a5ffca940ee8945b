"""Threads that tell the server something again and again outlive an error, whatever it is."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading

import pytest
from django.db import OperationalError

from workers.reports.repeated_step import RepeatedStep

PATIENCE_S = 20
LOSES_THREADS = """
import threading, time
import django
django.setup()
from workers.stopping import end_process
from workers.reports.repeated_step import RepeatedStep
lost = threading.Thread(target=lambda: 1 / 0)
lost.start()
lost.join()
print("still there", flush=True)
RepeatedStep("heartbeat", lambda: 1 / 0, 600, at_fault=end_process).start()
time.sleep(30)
"""


@pytest.mark.parametrize(
    ("error", "has_traceback"), [(OperationalError("away"), False), (KeyError("a bug"), True)]
)
def test_an_error_ends_one_step_only(caplog, error, has_traceback):
    errors, went_on = [error], threading.Event()

    def step() -> None:
        if errors:
            raise errors.pop()
        went_on.set()

    with caplog.at_level(logging.WARNING), RepeatedStep("beats", step, 0.01) as repeated:
        assert went_on.wait(PATIENCE_S)
    assert not repeated.is_running()
    (said,) = (record for record in caplog.records if record.name == "workers.reports.repeated_step")
    assert "beats: trying again" in said.message
    assert bool(said.exc_info) == has_traceback


def test_a_worker_that_lost_its_heartbeat_ends_so_that_it_is_started_anew() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOSES_THREADS], capture_output=True, text=True, check=False, timeout=25
    )
    assert (done.returncode, done.stdout) == (1, "still there\n")
    assert "this process ends: what it cannot do without has failed" in done.stderr
    assert "ZeroDivisionError" in done.stderr


def test_what_was_never_started_can_be_left():
    class Idle(RepeatedStep):
        def start(self) -> None:
            """Nothing to do here."""

    with Idle("idle", lambda: None, 0.01) as idle:
        assert not idle.is_running()
