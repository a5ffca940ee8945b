"""UI-TARS' points on the image that its model sees, and keys that press and release hold."""

import pytest

from training.actions.completion_text import format_action
from training.actions.coordinates import resized_size
from training.actions.dialects.registry import find_dialect
from training.actions.parse_completion import parse_completion
from training.contracts.config import CoordinateSpace
from training.contracts.types import Action

DIALECT = find_dialect("ui-tars")
SCREEN = (1920, 1080)


def test_every_corner_of_the_screen_can_be_hit():
    """With sides of multiples of 32 a click missed by up to 12 pixels, and the last 12 columns were off."""
    image = resized_size(SCREEN, 100 * 28 * 28, 16384 * 28 * 28, DIALECT.factor)
    assert image == (1932, 1092)
    for x in (0, 7, 960, 1919):
        action = Action(kind="click", x=x, y=1079)
        text = format_action(action, "ui-tars", CoordinateSpace.RESIZED, SCREEN, image)
        parsed = parse_completion(
            text, dialect="ui-tars", space=CoordinateSpace.RESIZED, screen=SCREEN, image=image
        )
        assert parsed.action == action


@pytest.mark.parametrize("screen", [(1022, 1522), (1280, 720), (1366, 768)])
def test_a_half_is_rounded_as_its_authors_round_it(screen):
    width, height = resized_size(screen, 100 * 28 * 28, 16384 * 28 * 28, DIALECT.factor)
    assert (width % 28, height % 28) == (0, 0)
    assert abs(width - screen[0]) <= 14
    assert abs(height - screen[1]) <= 14


def test_a_chord_cannot_be_pressed_and_released():
    with pytest.raises(ValueError, match="the ui-tars dialect has no word for this key_down"):
        format_action(Action(kind="key_down", keys=("ctrl", "shift")), "ui-tars")
