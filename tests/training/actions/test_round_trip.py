"""What a writer writes, its parser reads as the same action; what it cannot say it refuses whole."""

import json
from collections.abc import Callable
from functools import partial
from importlib import import_module

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testing.training.every_action import AT, EVERY_KIND, SCREEN, actions
from training.actions.coordinates import model_point
from training.actions.dialects.registry import DIALECTS
from training.actions.key_names import ALIASES, MODIFIERS
from training.actions.parse_completion import parse_completion
from training.actions.write_completion import completion_text, format_action
from training.contracts.config import CoordinateSpace, PromptConfig
from training.contracts.types import Action, ActionKind

K = ActionKind
NAMES = tuple(row.name for row in DIALECTS)


def can_say(dialect: str) -> Callable[[Action], bool]:
    """What its writer may not refuse: `can_say.py` of the dialect's tests."""
    module = import_module(f"tests.training.actions.dialects.{dialect.replace('-', '_')}.can_say")
    return module.can_say


def parse(text: str, dialect: str) -> Action | None:
    parsed = parse_completion(text, dialect=dialect, space=CoordinateSpace.SCREEN, screen=SCREEN)
    assert parsed.error is None, f"{text!r}: {parsed.error}"
    return parsed.action


@pytest.mark.parametrize("dialect", NAMES)
@settings(max_examples=250)
@given(action=EVERY_KIND)
def test_every_dialect_reads_what_it_writes_and_refuses_the_rest_by_name(dialect, action):
    if not can_say(dialect)(action):
        with pytest.raises(ValueError, match=rf"{dialect}|keyboard|no dialect|no one call|the tool's|json"):
            format_action(action, dialect, CoordinateSpace.SCREEN, SCREEN)
        return
    text = format_action(action, dialect, CoordinateSpace.SCREEN, SCREEN)
    assert parse(text, dialect) == action
    if dialect != "ui-tars":  # its words are also English
        assert parse(text, "auto") == action


@settings(max_examples=200)
@given(actions(st.sampled_from([K.CLICK, K.MOVE]), **AT))
def test_points_come_back_within_the_rounding_of_their_space(action):
    image = (640, 360)
    for space, off in ((CoordinateSpace.PERMILLE, 1), (CoordinateSpace.RESIZED, 2)):
        text = format_action(action, "json", space, SCREEN, image)
        back = parse_completion(text, space=space, screen=SCREEN, image=image).action
        assert back is not None
        assert abs(back.x - action.x) <= off
        assert abs(back.y - action.y) <= off


def test_permille_points_are_multiples_of_the_grid():
    point = partial(model_point, space=CoordinateSpace.PERMILLE, screen=SCREEN)
    assert point(1279, 0) == point(1279, 0, grid=10) == [1000, 0]
    assert (point(640, 357), point(640, 357, grid=10)) == ([500, 497], [500, 500])


def test_demonstrations_for_a_published_model_hit_every_small_target_of_a_full_hd_screen():
    """Clicks on the centres of 16 x 10 px targets; a grid of 101 x 101 left the target in one of seven."""
    screen, prompt = (1920, 1080), PromptConfig(style="computer-use", dialect="json")
    missed = worst = 0
    for x, y in [(x, y) for x in range(0, 1920, 37) for y in range(0, 1080, 23)]:
        text = completion_text(Action(kind=K.CLICK, x=x, y=y), screen, prompt)
        back = parse_completion(text, space=prompt.coordinate_space, screen=screen).action
        off_x, off_y = abs(back.x - x), abs(back.y - y)
        missed += off_x > 8 or off_y > 5
        worst = max(worst, off_x, off_y)
    assert (missed, worst) == (0, 1)


def test_the_tiny_models_prompt_keeps_the_grid_that_they_were_taught():
    click = Action(kind=K.CLICK, x=179, y=276)
    assert completion_text(click, (512, 384)) == '{"action":"left_click","coordinate":[350,720]}'


@pytest.mark.parametrize("name", [name for name in ALIASES if name not in MODIFIERS])
def test_every_spelling_of_a_key_is_the_key(name):
    for spelling in (name, name.upper(), *ALIASES[name]):
        text = json.dumps({"action": "key", "keys": [spelling]})
        assert parse(text, "json") == Action(kind=K.KEY, keys=(name,))
