"""When a silent joined host counts as gone: soon while our own port answered, late when it did not."""

from datetime import timedelta

import pytest
from django.utils import timezone

from testing.fleet_rows import make_worker
from webapp.fleet.models import Worker
from webapp.fleet.services import joined_silence, workers
from webapp.fleet.services.joined_silence import JoinedSilence


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def silence(clock: Clock) -> JoinedSilence:
    return JoinedSilence(clock)


def look(silence: JoinedSilence, clock: Clock, seconds: int, *, answers: bool = True) -> float:
    for _ in range(seconds // 4):
        clock.now += 4
        silence.note_port(answers=answers)
    return silence.limit().total_seconds()


def test_the_limit_is_short_once_the_port_has_answered_for_that_long(silence, clock):
    assert silence.limit() == timedelta(seconds=120)
    assert look(silence, clock, 24) == 120
    assert look(silence, clock, 12) == 30
    assert look(silence, clock, 4, answers=False) == 120
    assert look(silence, clock, 24) == 120
    assert look(silence, clock, 12) == 30


def test_a_dispatcher_that_did_not_look_knows_nothing(silence, clock):
    assert look(silence, clock, 40) == 30
    clock.now += 11
    assert silence.limit() == timedelta(seconds=120)
    assert look(silence, clock, 24) == 120


def test_both_limits_are_settings(silence, clock, settings):
    settings.HOST_GONE_S, settings.HOST_AWAY_S = 60, 300
    assert look(silence, clock, 40) == 300
    assert look(silence, clock, 40) == 60


@pytest.mark.django_db
@pytest.mark.parametrize(("answered", "is_lost"), [(True, True), (False, False)])
def test_a_host_silent_for_31_seconds(monkeypatch, silence, clock, answered, is_lost):
    monkeypatch.setattr(workers, "SILENCE", silence)
    look(silence, clock, 60, answers=answered)
    worker = make_worker("env1@far", host="far")
    Worker.objects.update(is_joined=True, heartbeat_at=timezone.now() - timedelta(seconds=31))
    assert [one.name for one in workers.lose_stale_workers()] == ([worker.name] if is_lost else [])
    assert joined_silence.SILENCE.limit() == timedelta(seconds=120)  # no process but the dispatcher judges
