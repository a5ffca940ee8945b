"""Turns with several actions: stored in order, shown with their numbers, read back as they were."""

import pytest
from django.utils import timezone

from testing.factories import make_trajectory
from training.contracts.types import Action, Observation, Turn
from webapp.trajectories.action_words import action_caption
from webapp.trajectories.queries.trajectories import brief_turns
from webapp.trajectories.row_to_types import trajectory_of
from webapp.trajectories.services.turns import close_turn, open_turn
from webapp.trajectories.turn_display import turn_json

SEEN = Observation(sha256="a" * 64, width=640, height=480)
ACTIONS = (
    Action(kind="key_down", keys=("ctrl",)),
    Action(kind="click", x=3, y=4),
    Action(kind="key_up", keys=("ctrl",)),
)


@pytest.mark.django_db
def test_a_turn_with_several_actions_is_stored_and_shown_in_order():
    row = make_trajectory(status="running")
    open_turn(row.pk, 50, "policy", SEEN, timezone.now())
    turn = Turn(index=50, observation=SEEN, earlier_actions=ACTIONS[:2], action=ACTIONS[2])
    close_turn(row.pk, turn, "", timezone.now())
    assert trajectory_of(row).turns[-1].actions == ACTIONS
    shown = turn_json(brief_turns(row)[-1], with_raw=False)
    assert [step["caption"] for step in shown["steps"]] == ["Keys down Ctrl", "Click 3, 4", "Keys up Ctrl"]
    assert shown["caption"] == "Keys down Ctrl, then Click 3, 4, then Keys up Ctrl"


@pytest.mark.parametrize(
    ("action", "words"),
    [
        ({"kind": "click", "x": 3, "y": 4, "modifiers": ["ctrl", "shift"]}, "Ctrl + ⇧ Shift + Click 3, 4"),
        ({"kind": "drag", "to_x": 3, "to_y": 4, "button": "right"}, "Drag at pointer → 3, 4 (right button)"),
        ({"kind": "key", "keys": ["alt", "Tab"], "presses": 2}, "Press Alt + ⇥ Tab × 2"),
        ({"kind": "key", "keys": ["Right"], "seconds": 1.5}, "Press → for 1.5 s"),
        ({"kind": "mouse_down", "x": 3, "y": 4}, "Button down 3, 4"),
        ({"kind": "paste", "text": "é"}, "Paste “é”"),
    ],
)
def test_modifiers_holds_and_counts_are_said_in_words(action, words):
    assert action_caption(action) == words
