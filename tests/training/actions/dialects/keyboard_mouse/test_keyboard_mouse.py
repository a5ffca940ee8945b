"""The tags of the keyboard with a pointer: what is written has every point."""

import pytest

from training.actions.completion_text import format_action
from training.contracts.types import Action


@pytest.mark.parametrize(
    "action", [Action(kind="click"), Action(kind="drag", to_x=1, to_y=2), Action(kind="move", x=1)]
)
def test_a_point_that_is_not_known_is_refused(action):
    with pytest.raises(ValueError, match="the keyboard-mouse dialect needs every point"):
        format_action(action, "keyboard-mouse")


def test_keys_are_written_as_without_a_pointer():
    action = Action(kind="key", keys=("ctrl", "+"))
    assert format_action(action, "keyboard-mouse") == "<action>sendkey ctrl-plus</action>"
