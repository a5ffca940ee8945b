"""OpenCUA's sections: the action in words, then code in a block of its own."""

import pytest

from training.actions.dialects.registry import find_dialect
from training.actions.write_completion import format_action
from training.contracts.config import CoordinateSpace
from training.contracts.types import Action

DIALECT = find_dialect("opencua")


def test_an_end_is_a_function_of_its_own():
    text = format_action(Action(kind="terminate", status="success", text="42"), "opencua")
    assert "```code\ncomputer.terminate(status='success', answer='42')\n```" in text


@pytest.mark.parametrize(
    ("completion", "words"),
    [
        ("## Thought:\nx\n\n## Action:\nClick\nit.\n\n## Code:\n```python\n```", "Click it."),
        ("Action: Click it.", "Click it."),
    ],
)
def test_the_list_of_previous_actions_has_its_section(completion, words):
    assert DIALECT.words(completion) == words


def test_points_are_pixels_of_the_image_of_its_model():
    assert (DIALECT.space, DIALECT.factor) == (CoordinateSpace.RESIZED, 28)


def test_the_mark_of_a_block_cannot_be_typed():
    with pytest.raises(ValueError, match="the opencua dialect cannot type the mark of a code block"):
        format_action(Action(kind="type", text="```"), "opencua")
