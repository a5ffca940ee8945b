"""UI-TARS' points on the image that its model sees, and keys that press and release hold."""

from types import SimpleNamespace

import pytest

from training.actions.coordinates import resized_size
from training.actions.dialects.registry import find_dialect
from training.actions.parse_completion import parse_completion
from training.actions.several_actions import turn_text
from training.actions.write_completion import completion_text, format_action
from training.contracts.config import CoordinateSpace, PromptConfig
from training.contracts.types import Action, ActionKind, Observation, Turn

DIALECT = find_dialect("ui-tars")
SCREEN = (1920, 1080)
K = ActionKind
READ = {
    "Thought: The menu is there.\nAction: click(start_box='(512,340)')": Action(kind=K.CLICK, x=512, y=340),
    "Action: left_double(point='<point>5 6</point>')": Action(kind=K.DOUBLE_CLICK, x=5, y=6),
    "Action: right_single(start_box='<|box_start|>(5,6)<|box_end|>')": Action(kind=K.RIGHT_CLICK, x=5, y=6),
    "Action: click(start_box='[10, 20, 30, 40]')": Action(kind=K.CLICK, x=20, y=30),
    "Action: drag(start_box='(1,2)', end_box='(3,4)')": Action(kind=K.DRAG, x=1, y=2, to_x=3, to_y=4),
    "Action: hotkey(key='ctrl shift t')": Action(kind=K.KEY, keys=("ctrl", "shift", "t")),
    "Action: hotkey(key='ctrl+s')": Action(kind=K.KEY, keys=("ctrl", "s")),
    "Action: type(content='it\\'s\\n')": Action(kind=K.TYPE, text="it's\n"),
    "Action: scroll(point='<point>5 6</point>', direction='down')": Action(
        kind=K.SCROLL, x=5, y=6, scroll_y=5
    ),
    "Action: wait()": Action(kind=K.WAIT, seconds=5.0),
    "Action: finished()": Action(kind=K.TERMINATE, status="success"),
    "Action: finished(content='42')": Action(kind=K.TERMINATE, status="success", text="42"),
    "Action: call_user()": Action(kind=K.TERMINATE, status="failure"),
}


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


def parse(text: str, most: int = 1):
    space = CoordinateSpace.SCREEN
    return parse_completion(text, dialect="ui-tars", space=space, screen=(1000, 500), most=most)


@pytest.mark.parametrize("text", READ)
def test_ui_tars_text_is_read(text: str) -> None:
    assert parse(text).action == READ[text], parse(text).error


def test_the_thought_is_kept_apart() -> None:
    assert parse(next(iter(READ))).thought == "The menu is there."


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("click(start_box='(1,2)')", "no action in a known form"),
        ("Action: __import__('os').system('x')", "one call with named arguments"),
        ("Action: click(start_box='(1,2)')\n\nclick(start_box='(3,4)')", "more than one action"),
        ("Action: click(start_box=open('x'))", "texts in quotes"),
        ("Action: click(start_box='here')", "start_box must hold a point or a box"),
        ("Action: click()", "start_box is missing"),
        ("Action: fly(start_box='(1,2)')", "unknown action 'fly'"),
        ("Action: wait(time='5')", "wait takes no 'time'"),
        ("Action: hotkey(key='')", "1 to 5 keys"),
        ("Action: scroll(direction='sideways')", "direction must be"),
        ("Action: click(start_box='(1e9,2)')", "start_box must hold a point or a box"),
    ],
)
def test_other_text_is_refused_with_its_reason(text: str, error: str) -> None:
    parsed = parse(text)
    assert parsed.action is None
    assert error in str(parsed.error)


def test_calls_stand_one_to_a_line():
    text = "Thought: x\nAction: click(start_box='(1,2)')\n\nhotkey(key='ctrl s')"
    assert [action.kind for action in parse(text, most=4).actions] == ["click", "key"]


def test_several_actions_cannot_be_written_as_one_completion():
    turn = Turn(
        index=0,
        observation=Observation(sha256="", width=1, height=1),
        earlier_actions=(Action(kind="click", x=0, y=0),),
        action=Action(kind="wait", seconds=5),
    )
    config = PromptConfig(dialect="ui-tars", actions_per_turn=3)
    writer = SimpleNamespace(
        prompt=config, action_text=lambda action, screen: completion_text(action, screen, config)
    )
    with pytest.raises(ValueError, match="the ui-tars dialect reads the last one only"):
        turn_text(writer, turn, SCREEN)
