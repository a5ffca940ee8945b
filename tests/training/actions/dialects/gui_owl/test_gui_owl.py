"""GUI-Owl's call stands between thoughts and a conclusion, which is what it says that it did."""

import pytest

from training.actions.dialects.registry import find_dialect
from training.actions.write_completion import format_action
from training.contracts.config import CoordinateSpace
from training.contracts.types import Action

DIALECT = find_dialect("gui-owl")


@pytest.mark.parametrize(
    ("completion", "words"),
    [
        ("<tool_call>\n{}\n</tool_call>\n<conclusion>\nI open\nthe menu.\n</conclusion>", "I open the menu."),
        ("<conclusion>\nCut of", "Cut of"),
        ("Action: Click it.", "Click it."),
        ("", "nothing"),
    ],
)
def test_the_list_of_previous_actions_has_the_conclusions(completion, words):
    assert DIALECT.words(completion) == words


def test_points_are_pixels_of_the_image_of_its_model():
    assert (DIALECT.space, DIALECT.factor) == (CoordinateSpace.RESIZED, 28)


@pytest.mark.parametrize(
    "action", [Action(kind="triple_click", x=1, y=2), Action(kind="terminate", status="success", text="42")]
)
def test_what_the_tool_lacks_is_refused_by_name(action):
    with pytest.raises(ValueError, match="the gui-owl dialect has no word"):
        format_action(action, "gui-owl")
