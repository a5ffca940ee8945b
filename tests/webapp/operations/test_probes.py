"""/readyz: ready while database, Redis and a dispatcher are there; each is named when it is not."""

from datetime import timedelta

import pytest
from django.core.management import call_command
from django.db import OperationalError, connection
from django.utils import timezone

from webapp.dispatcher.models import DispatcherBeat
from webapp.dispatcher.services.beat import beat

pytestmark = pytest.mark.django_db


def test_it_is_ready_while_everything_is_there(client, settings):
    settings.ALLOWED_HOSTS = ["desk.example.com"]
    beat(0.01)
    answer = client.get("/readyz", headers={"host": "10.0.0.7:8700"})
    assert answer.status_code == 200
    assert answer.json() == {"status": "ready", "database": "ok", "redis": "ok", "dispatcher": "ok"}


def test_a_dispatcher_that_was_never_seen_is_told(client):
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()["dispatcher"]) == (503, "never seen")


@pytest.mark.parametrize("ahead", [-60, 60], ids=["silent", "the clock was set back"])
def test_a_silent_dispatcher_is_told(client, ahead):
    beat(0.01)
    DispatcherBeat.objects.update(at=timezone.now() + timedelta(seconds=ahead))
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()["dispatcher"]) == (503, "silent for 60 s")


def test_a_database_that_is_away_is_told(client, monkeypatch):
    def refuse(*_):
        raise OperationalError("connection refused")

    monkeypatch.setattr(connection, "cursor", refuse)
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()["database"]) == (503, "does not answer")
    assert client.get("/livez").status_code == 200


def test_one_row_tells_of_the_dispatcher(client):
    for tick_s in (0.1, 0.3):
        beat(tick_s)
    assert DispatcherBeat.objects.get().tick_s == 0.3


def test_a_single_tick_by_hand_is_no_dispatcher(client):
    call_command("dispatch", "--once")
    assert client.get("/readyz").json()["dispatcher"] == "never seen"
