"""A slot gives its environment back when nobody has used it for a while, and never during a trajectory."""

from __future__ import annotations

import pytest

from training.contracts.config import DesktopConfig
from workers.env import slots
from workers.environments.registry import EnvironmentRequest

REQUEST = EnvironmentRequest.of(DesktopConfig(), (512, 384), holder="me", key="t1")


class Room:
    """An environment that only counts."""

    desktop_id, provider, is_lost = "d1", "x11", False

    def __init__(self) -> None:
        self.calls: list[str] = []

    def reset(self) -> None:
        self.calls.append("reset")

    def close(self) -> None:
        self.calls.append("close")


@pytest.fixture
def room(monkeypatch: pytest.MonkeyPatch) -> Room:
    made = Room()
    monkeypatch.setitem(slots.ENVIRONMENTS, REQUEST.provider, lambda request: made)
    monkeypatch.setattr(slots, "end_remote_desktop", lambda desktop_id: made.calls.append(desktop_id))
    return made


def test_an_idle_slot_gives_its_desktop_back_and_takes_one_again(room: Room):
    slot = slots.Slot()
    slot.clean(REQUEST)
    slot.give_up_idle(0)
    assert room.calls == [], "a trajectory runs on it"
    slot.reset_after_trajectory()
    slot.give_up_idle(60)
    assert room.calls == ["reset"], "it was used just now"
    slot.give_up_idle(0)
    assert room.calls == ["reset", "d1", "close"]
    slot.give_up_idle(0)
    assert room.calls == ["reset", "d1", "close"], "there is nothing left to give up"
    assert slot.clean(REQUEST) is room
