"""What UI-TARS' and OpenCUA's models write, read as actions."""

import pytest

from training.actions.parse_completion import parse_completion
from training.contracts.config import CoordinateSpace
from training.contracts.types import Action, ActionKind

SCREEN = (1000, 500)
K = ActionKind
UI_TARS = {
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
OPENCUA = {
    "## Action:\nClick it.\n\n## Code:\n```python\npyautogui.click(x=5, y=6)\n```": Action(
        kind=K.CLICK, x=5, y=6
    ),
    "```python\ncomputer.tripleClick(x=5, y=6)\n```": Action(kind=K.TRIPLE_CLICK, x=5, y=6),
    "```code\ncomputer.wait()\n```": Action(kind=K.WAIT, seconds=3.0),
    "```python\ncomputer.terminate(status='failure')\n```": Action(kind=K.TERMINATE, status="failure"),
    "```python\ncomputer.terminate(status='success', answer='42')\n```": Action(
        kind=K.TERMINATE, status="success", text="42"
    ),
}


def parse(text: str, dialect: str):
    return parse_completion(text, dialect=dialect, space=CoordinateSpace.SCREEN, screen=SCREEN)


@pytest.mark.parametrize("text", UI_TARS)
def test_ui_tars_text_is_read(text: str) -> None:
    assert parse(text, "ui-tars").action == UI_TARS[text], parse(text, "ui-tars").error


def test_the_thought_is_kept_apart() -> None:
    assert parse(next(iter(UI_TARS)), "ui-tars").thought == "The menu is there."


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
    parsed = parse(text, "ui-tars")
    assert parsed.action is None
    assert error in str(parsed.error)


@pytest.mark.parametrize("text", OPENCUA)
@pytest.mark.parametrize("dialect", ["pyautogui", "auto"])
def test_opencuas_code_is_read(text: str, dialect: str) -> None:
    assert parse(text, dialect).action == OPENCUA[text], parse(text, dialect).error
