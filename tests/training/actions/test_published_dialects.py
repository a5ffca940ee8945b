"""What OpenCUA's models write, read as code."""

import pytest

from training.actions.parse_completion import parse_completion
from training.contracts.config import CoordinateSpace
from training.contracts.types import Action, ActionKind

SCREEN = (1000, 500)
K = ActionKind
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


@pytest.mark.parametrize("text", OPENCUA)
@pytest.mark.parametrize("dialect", ["pyautogui", "auto"])
def test_opencuas_code_is_read(text: str, dialect: str) -> None:
    assert parse(text, dialect).action == OPENCUA[text], parse(text, dialect).error
