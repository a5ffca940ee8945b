"""Silence means nothing while no worker could write a heartbeat, or after the clock was set."""

from __future__ import annotations

import pytest

from webapp.dispatcher.liveness import GRACE_S, Liveness

pytestmark = pytest.mark.django_db


class Clocks:
    def __init__(self) -> None:
        self.monotonic, self.wall = 1000.0, 5000.0

    def go_on(self, seconds: float) -> None:
        self.monotonic += seconds
        self.wall += seconds


@pytest.fixture
def clocks() -> Clocks:
    return Clocks()


@pytest.fixture
def liveness(clocks: Clocks) -> Liveness:
    """Of a dispatcher that has been here for a while."""
    found = Liveness(lambda: clocks.monotonic, lambda: clocks.wall)
    judgements(clocks, found, GRACE_S + 1)
    return found


def judgements(clocks: Clocks, liveness: Liveness, seconds: float) -> list[bool]:
    """One every two seconds."""
    found = []
    for _ in range(int(seconds / 2)):
        clocks.go_on(2)
        found.append(liveness.may_judge())
    return found


def test_an_even_dispatcher_always_judges(clocks: Clocks, liveness: Liveness) -> None:
    assert all(judgements(clocks, liveness, 60))


def test_a_new_dispatcher_gives_workers_the_time_to_beat(clocks: Clocks) -> None:
    new = Liveness(lambda: clocks.monotonic, lambda: clocks.wall)
    assert not any(judgements(clocks, new, GRACE_S - 1))
    assert all(judgements(clocks, new, 20)[1:])


def test_after_a_lock_workers_get_the_time_to_beat(clocks: Clocks, liveness: Liveness) -> None:
    assert all(judgements(clocks, liveness, 10))
    clocks.go_on(30)
    assert not liveness.may_judge()
    assert not any(judgements(clocks, liveness, GRACE_S - 2))
    assert all(judgements(clocks, liveness, 20)[1:])


@pytest.mark.parametrize("step_s", [3600, -3600])
def test_a_step_of_the_clock_makes_nobody_lost(clocks: Clocks, liveness: Liveness, step_s: int) -> None:
    assert all(judgements(clocks, liveness, 10))
    clocks.wall += step_s
    assert not any(judgements(clocks, liveness, GRACE_S))
    assert all(judgements(clocks, liveness, 20)[1:])
