"""Turns with an accessibility tree and a terminal, as workers record them."""

from __future__ import annotations

import hashlib

from training.contracts.observed_text import ObservedText
from training.untrusted.packed_texts import packed
from webapp.trajectories.models import Trajectory, TurnRecord
from webapp.trajectories.services.texts import store_text

STATE = "https://accessibility.ubuntu.example.org/ns/state"
COMPONENT = "https://accessibility.ubuntu.example.org/ns/component"


def tree(*widgets: str) -> str:
    """A desktop with these widgets."""
    names = f'xmlns:st="{STATE}" xmlns:cp="{COMPONENT}"'
    return f'<desktop-frame name="main" {names}>{"".join(widgets)}</desktop-frame>'


def widget(role: str, name: str, box: tuple[int, int, int, int], inside: str = "") -> str:
    """One that is seen; `inside` is its text or other widgets."""
    left, top, width, height = box
    place = f'cp:screencoord="({left}, {top})" cp:size="({width}, {height})"'
    return f'<{role} name="{name}" st:showing="true" st:visible="true" {place}>{inside}</{role}>'


def read_with(turn: TurnRecord, **texts: str) -> None:
    """Record what was read with a turn: `accessibility` and `terminal`, raw."""
    read = {}
    for name, text in texts.items():
        sha256 = hashlib.sha256(text.encode()).hexdigest()
        store_text(Trajectory.objects.get(pk=turn.trajectory_id).team_id, packed(text), sha256)
        read[name] = ObservedText(sha256=sha256, num_chars=len(text)).model_dump(mode="json")
        setattr(turn, name, sha256)
    turn.read_texts = read
    turn.save()
