"""Turns as pages of many long trajectories read them: what whole rows say, decoded when asked."""

import pytest
from django.utils import timezone

from testing.factories import make_trajectory
from webapp.trajectories.models import TurnRecord
from webapp.trajectories.queries.trajectories import brief_turns
from webapp.trajectories.turn_display import turn_json, turn_state

pytestmark = pytest.mark.django_db
GOOD = [{"name": "score.v1", "value": 1.0, "weight": 1.0, "contribution": 0.5}]
BAD = [{"name": "pace.v1", "value": 1.0, "weight": 1.0, "contribution": -0.5}]
CLICK = {"kind": "click", "x": 3, "y": 4}
ROWS = [
    {"action": CLICK, "terms": GOOD},
    {"action": {"kind": "type", "text": "naïve “”"}, "terms": BAD},
    {"action": CLICK, "terms": []},
    {"action": None, "terms": []},
    {"action": None, "terms": BAD, "parse_error": "no action"},
    {"action": CLICK, "terms": GOOD, "action_error": "refused"},
]


@pytest.fixture
def trajectory():
    trajectory = make_trajectory(turns=0)
    shared = {"trajectory": trajectory, "frame": "a" * 64, "width": 640, "height": 480}
    shared["observed_at"] = timezone.now()
    TurnRecord.objects.bulk_create(
        TurnRecord(index=index, **shared, **values) for index, values in enumerate(ROWS)
    )
    return trajectory


def test_a_brief_turn_says_what_the_whole_one_says(trajectory):
    whole = list(trajectory.turns.order_by("index"))
    brief = brief_turns(trajectory)
    assert [(turn.action, turn.terms) for turn in brief] == [(turn.action, turn.terms) for turn in whole]
    assert [turn.state for turn in brief] == [turn_state(turn) for turn in whole]
    assert [turn_json(turn) for turn in brief] == [turn_json(turn) for turn in whole]


def test_the_colour_of_a_turn_needs_no_action(trajectory):
    """Of hundreds of turns a page shows the colour alone."""
    for turn in brief_turns(trajectory):
        assert turn.state
        assert "action" not in vars(turn)
