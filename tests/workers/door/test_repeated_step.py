"""Threads that tell the server something again and again outlive an error, whatever it is."""

from __future__ import annotations

import logging
import threading

import pytest
from django.db import OperationalError

from workers.door.repeated_step import RepeatedStep

PATIENCE_S = 20


@pytest.mark.parametrize(
    ("error", "has_traceback"), [(OperationalError("away"), False), (KeyError("a bug"), True)]
)
def test_an_error_ends_one_step_only(caplog, error, has_traceback):
    errors, went_on = [error], threading.Event()

    def step() -> None:
        if errors:
            raise errors.pop()
        went_on.set()

    with caplog.at_level(logging.WARNING), RepeatedStep("beats", step, every_s=0.01) as repeated:
        assert went_on.wait(PATIENCE_S)
    assert not repeated.is_running()
    (said,) = caplog.records
    assert "beats: trying again" in said.message
    assert bool(said.exc_info) == has_traceback


def test_what_was_never_started_can_be_left():
    class Idle(RepeatedStep):
        def start(self) -> None:
            """Nothing to do here."""

    with Idle("idle", lambda: None, every_s=0.01) as idle:
        assert not idle.is_running()
