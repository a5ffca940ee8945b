"""docs/dialects.md has a row for every dialect, and what it says of them is so.

`python -m tests.training.actions.test_dialects_page` writes the table anew.
"""

import json
import re

from testing.paths import REPOSITORY
from training.actions.dialects.contract import Dialect
from training.actions.dialects.registry import DIALECTS
from training.actions.parse_completion import parse_completion
from training.actions.write_completion import format_action
from training.contracts.config import CoordinateSpace
from training.contracts.types import Action, ActionKind
from training.planning.presets import load_presets

K = ActionKind
PAGE = REPOSITORY / "docs" / "dialects.md"
AUTHORS = REPOSITORY / "tests/training/actions/dialects"
MARKS = re.compile(r"(<!-- dialects: .*? -->\n)(.*?)(<!-- /dialects -->)", re.DOTALL)
HEAD = "| dialect | of | author's parser | round trip | coordinates | preset |\n|---|---|---|---|---|---|\n"
SCREEN, IMAGE = (1920, 1080), (1932, 1092)
AT, TO = {"x": 0, "y": 0}, {"to_x": SCREEN[0] - 1, "to_y": SCREEN[1] - 1}
"""Corners, which every coordinate space has exactly."""
PARTS = {
    "clicks where the pointer is": Action(kind=K.CLICK),
    "other clicks than left, right and double": Action(kind=K.TRIPLE_CLICK, **AT),
    "pointer": Action(kind=K.CLICK, **AT),
    "drags from a point": Action(kind=K.DRAG, **AT, **TO),
    "drags from the pointer": Action(kind=K.DRAG, **TO),
    "wheel": Action(kind=K.SCROLL, scroll_y=5),
    "wheel sideways": Action(kind=K.SCROLL, scroll_x=5),
    "text": Action(kind=K.TYPE, text="it's {a}"),
    "chords": Action(kind=K.KEY, keys=("ctrl", "s")),
    "keys held during a click": Action(kind=K.CLICK, **AT, modifiers=("ctrl",)),
    "counted presses": Action(kind=K.KEY, keys=("Down",), presses=3),
    "keys held for a time": Action(kind=K.KEY, keys=("w",), seconds=2),
    "keys down and up": Action(kind=K.KEY_DOWN, keys=("shift",)),
    "buttons down and up": Action(kind=K.MOUSE_DOWN),
    "paste": Action(kind=K.PASTE, text="a"),
    "waits of any time": Action(kind=K.WAIT, seconds=2.5),
    "success": Action(kind=K.TERMINATE, status="success"),
    "failure": Action(kind=K.TERMINATE, status="failure"),
    "answers": Action(kind=K.TERMINATE, status="success", text="42"),
}
"""What an action can be, by one example each."""


def comes_back(row: Dialect, action: Action) -> bool:
    """Whether the dialect can say it; then it must mean the same when it is read."""
    try:
        text = format_action(action, row.name, row.space, SCREEN, IMAGE)
    except ValueError:
        return False
    parsed = parse_completion(text, dialect=row.name, space=row.space, screen=SCREEN, image=IMAGE)
    assert parsed.action == action, f"{row.name}: {text}: {parsed.error}"
    return True


def agreement(row: Dialect) -> str:
    """How many texts the author's parser reads alike, and which it is."""
    file = AUTHORS / row.name.replace("-", "_") / "authors_parser.json"
    if not file.exists():
        return "not public, or none"
    data = json.loads(file.read_text())
    alike = sum("decision" not in one for one in data["rows"])
    return f"{alike} of {len(data['rows'])}: {data['source']}"


def coordinates(row: Dialect) -> str:
    is_resized = row.space is CoordinateSpace.RESIZED
    return f"`{row.space.value}`" + (f", sides of multiples of {row.factor}" if is_resized else "")


def table() -> str:
    lines = []
    for row in DIALECTS:
        lacks = [name for name, action in PARTS.items() if not comes_back(row, action)]
        presets = [f"`{one.name}`" for one in load_presets() if one.config.prompt.dialect == row.name]
        trip = f"all but {', '.join(lacks)}" if lacks else "all"
        cells = (f"`{row.name}`", row.of, agreement(row), trip, coordinates(row), ", ".join(presets) or "—")
        lines.append(f"| {' | '.join(cells)} |\n")
    return HEAD + "".join(lines)


def test_the_table_of_dialects_is_so() -> None:
    found = MARKS.search(PAGE.read_text())
    assert found is not None
    assert found[2] == table(), "run python -m tests.training.actions.test_dialects_page"


if __name__ == "__main__":
    PAGE.write_text(MARKS.sub(lambda found: found[1] + table() + found[3], PAGE.read_text()))
