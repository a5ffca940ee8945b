"""A policy server that no connection reaches is waited for, as long as someone may bring it back."""

import threading
from collections.abc import Iterator
from contextlib import ExitStack

import httpx
import pytest

from testing.servers.answering import Answer, answering
from webapp.lib.supervisor.ports import free_port
from workers.env import actors
from workers.env.actors import ask_patiently


@pytest.fixture
def port() -> Iterator[int]:
    """A port on which a server comes up after a second."""
    number = free_port()
    with ExitStack() as running:
        come_up = answering(lambda _: Answer(), port=number)
        timer = threading.Timer(1.0, lambda: running.enter_context(come_up))
        timer.start()
        yield number
        timer.cancel()


def asked(port: int) -> int:
    return httpx.get(f"http://127.0.0.1:{port}/", trust_env=False, timeout=10).status_code


def test_one_that_comes_back_answers_and_the_time_without_it_is_told(port: int) -> None:
    status, absent_s = ask_patiently(lambda: asked(port), lambda: False)
    assert status == 200
    assert absent_s > 0.5
    assert ask_patiently(lambda: asked(port), lambda: False) == (200, 0.0)


def test_a_trajectory_that_was_called_off_meanwhile_waits_no_longer() -> None:
    looks = iter([False, True])
    with pytest.raises(httpx.ConnectError):
        ask_patiently(lambda: asked(free_port()), lambda: next(looks))
    assert list(looks) == []


def test_it_is_given_up_when_it_does_not_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(actors, "LIMIT_S", 0.5)
    with pytest.raises(httpx.ConnectError):
        ask_patiently(lambda: asked(free_port()), lambda: False)
