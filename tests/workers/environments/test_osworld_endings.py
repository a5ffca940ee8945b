"""What an episode's last action says to OSWorld."""

from training.contracts.types import Action, ActionKind
from workers.environments.osworld.environment import ending_of


def test_an_ending_is_done_or_fail_and_nothing_after_a_limit():
    assert ending_of(Action(kind=ActionKind.TERMINATE, status="success")) == "DONE"
    assert ending_of(Action(kind=ActionKind.TERMINATE, status="failure")) == "FAIL"
    assert ending_of(Action(kind=ActionKind.CLICK, x=1, y=1)) == ending_of(None) == ""
