"""EvoCUA's tool has keys that stay down, and lacks what its published list lacks."""

import pytest

from training.actions.dialects.registry import find_dialect
from training.actions.write_completion import format_action
from training.contracts.types import Action


def test_held_keys_are_written_as_its_tool_names_them():
    text = format_action(Action(kind="key_down", keys=("shift",)), "evocua")
    assert '{"action": "key_down", "keys": ["shift"]}' in text
    assert find_dialect("evocua").words(text) == "Hold the keys down."


@pytest.mark.parametrize(
    "action",
    [Action(kind="paste", text="a"), Action(kind="mouse_down"), Action(kind="click", x=1, y=2, presses=5)],
)
def test_what_the_tool_lacks_is_refused_by_name(action):
    with pytest.raises(ValueError, match="the evocua dialect has no word"):
        format_action(action, "evocua")
