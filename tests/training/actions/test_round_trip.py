"""What a writer writes, its parser reads as the same action; what it cannot say it refuses whole."""

import json
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testing.training.every_action import AT, EVERY_KIND, SCREEN, actions, is_answer, is_diagonal
from training.actions.completion_text import completion_text, format_action
from training.actions.coordinates import model_point
from training.actions.dialects.registry import DIALECTS
from training.actions.key_names import ALIASES, MODIFIERS
from training.actions.parse_completion import parse_completion
from training.actions.write.unsaid_parts import newer_parts
from training.contracts.config import CoordinateSpace, PromptConfig
from training.contracts.types import Action, ActionKind

K = ActionKind
NAMES = tuple(row.name for row in DIALECTS)
CLICKS = {K.CLICK, K.RIGHT_CLICK, K.MIDDLE_CLICK, K.DOUBLE_CLICK}
POINTED = {*CLICKS, K.TRIPLE_CLICK, K.MOVE}
SCROLL_NOTCHES, WAIT_S = 5, 5.0
"""What UI-TARS' words mean, which have no number."""
STAYS = {K.KEY_DOWN, K.KEY_UP, K.MOUSE_DOWN, K.MOUSE_UP, K.PASTE}


def in_json(a: Action) -> bool:
    return not is_diagonal(a) and (a.kind is not K.MOVE or a.x is not None)


def in_tool(a: Action) -> bool:
    return in_json(a) and (a.kind is not K.DRAG or a.x is None)


def in_code(a: Action) -> bool:
    return not is_diagonal(a) and (len(a.keys) < 2 or a.presses == 1)


def by_keyboard(a: Action) -> bool:
    is_typed = a.kind in (K.TYPE, K.KEY, K.WAIT) or (
        a.kind is K.TERMINATE and a.status == "success" and not a.text
    )
    return is_typed and not newer_parts(a) and not holds(a, "</action>", "</think>")


def holds(a: Action, *marks: str) -> bool:
    """Whether it types a mark that would end the form in which it is written."""
    return any(mark in (a.text or "") for mark in marks)


CAN_SAY = {
    "json": in_json,
    "tool-call": in_tool,
    "xml-call": lambda a: in_tool(a) and not holds(a, "</parameter>", "</think>"),
    "evocua": lambda a: (
        in_tool(a) and not newer_parts(a) and (a.kind not in STAYS or a.kind in (K.KEY_DOWN, K.KEY_UP))
    ),
    "gui-owl": lambda a: (
        in_json(a)
        and not newer_parts(a)
        and not is_answer(a)
        and a.kind not in STAYS | {K.TRIPLE_CLICK}
        and (a.kind not in POINTED or a.x is not None)
        and (a.kind is not K.SCROLL or (a.x is None and not a.scroll_x))
        and (a.kind is not K.DRAG or a.x is not None)
    ),
    "holo": lambda a: (
        in_json(a)
        and not newer_parts(a)
        and a.kind not in STAYS
        and (a.kind not in POINTED | {K.DRAG} or a.x is not None)
    ),
    "anthropic": lambda a: (
        not is_diagonal(a)
        and not is_answer(a)
        and newer_parts(a).keys() <= {"modifiers", "hold_s"}
        and (a.kind is not K.MOVE or a.x is not None)
        and (a.kind is not K.DRAG or not a.modifiers)
        and (a.kind not in STAYS or (a.kind in (K.MOUSE_DOWN, K.MOUSE_UP) and a.x is None))
    ),
    "openai": lambda a: (
        newer_parts(a).keys() <= {"modifiers"}
        and all(key.lower() == key or len(key) > 1 or len(key.lower()) > 1 for key in a.keys)
        and (a.kind in (K.TYPE, K.KEY, K.SCROLL) or (a.kind in CLICKS | {K.MOVE, K.DRAG} and a.x is not None))
    ),
    "ui-tars": lambda a: (
        not newer_parts(a)
        and (
            a.kind in (K.TYPE, K.KEY)
            or (a.kind in (K.KEY_DOWN, K.KEY_UP) and len(a.keys) == 1)
            or (a.kind is K.SCROLL and sorted((abs(a.scroll_x), abs(a.scroll_y))) == [0, SCROLL_NOTCHES])
            or (a.kind is K.WAIT and a.seconds == WAIT_S)
            or (a.kind is K.TERMINATE and not (a.status == "failure" and a.text))
            or (a.kind in (K.CLICK, K.DOUBLE_CLICK, K.RIGHT_CLICK, K.MOVE, K.DRAG) and a.x is not None)
        )
    ),
    "pyautogui": lambda a: in_code(a) and not is_answer(a),
    "opencua": lambda a: in_code(a) and not holds(a, "```"),
    "keyboard": by_keyboard,
    "keyboard-mouse": lambda a: (
        by_keyboard(a)
        or (not newer_parts(a) and a.kind is K.SCROLL and a.x is None and not is_diagonal(a))
        or (
            not newer_parts(a)
            and a.kind in (K.CLICK, K.DOUBLE_CLICK, K.RIGHT_CLICK, K.MOVE, K.DRAG)
            and a.x is not None
        )
    ),
}
"""What a writer may not refuse."""


def parse(text: str, dialect: str) -> Action | None:
    parsed = parse_completion(text, dialect=dialect, space=CoordinateSpace.SCREEN, screen=SCREEN)
    assert parsed.error is None, f"{text!r}: {parsed.error}"
    return parsed.action


@pytest.mark.parametrize("dialect", NAMES)
@settings(max_examples=250)
@given(action=EVERY_KIND)
def test_every_dialect_reads_what_it_writes_and_refuses_the_rest_by_name(dialect, action):
    if not CAN_SAY[dialect](action):
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
