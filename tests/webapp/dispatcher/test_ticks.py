"""A tick's parts stand for themselves: what the database refuses in one keeps none of the others."""

from __future__ import annotations

import logging

import pytest
from django.db import DatabaseError

from webapp.accounts.models import Team
from webapp.dispatcher.management.commands import dispatch

pytestmark = pytest.mark.django_db(transaction=True)


def store_too_long() -> None:
    """As a row may whose value was never meant for its column."""
    Team.objects.create(name="x" * 81)


def test_the_parts_behind_one_that_cannot_be_stored_are_done(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    with pytest.raises(DatabaseError):
        store_too_long()
    done: list[str] = []
    parts = (store_too_long, lambda: done.append("liveness"))
    monkeypatch.setattr(dispatch, "LIVENESS_PARTS", parts)
    monkeypatch.setattr(dispatch, "fill_free_slots", store_too_long)
    monkeypatch.setattr(dispatch, "place_experiments", lambda: done.append("placing"))
    with caplog.at_level(logging.ERROR):
        dispatch.tick(check_liveness=True)
    assert done == ["liveness", "placing"]
    assert [record.getMessage() for record in caplog.records] == [
        "dispatcher: store_too_long failed, the rest goes on"
    ] * 2
