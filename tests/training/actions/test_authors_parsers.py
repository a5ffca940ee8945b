"""Each author's own parser means the same by a completion as ours, where it is public.

`dialects/NAME/authors_parser.json` has the completions and the pyautogui code that the author's parser made
of each, with the source that was run. Compared is what happens on a desktop: pauses that only let it settle
do not count, points may differ by the rounding of one pixel. A row that differs says why, as `decision`.
"""

import json
from collections.abc import Iterator

import pytest

from testing.paths import REPOSITORY
from training.actions.parse_completion import parse_completion
from training.contracts.config import CoordinateSpace
from training.contracts.types import Action, ActionKind

K = ActionKind
FILES = sorted((REPOSITORY / "tests/training/actions/dialects").glob("*/authors_parser.json"))
SOURCES = [json.loads(file.read_text()) for file in FILES]
ROWS = [(source, row) for source in SOURCES for row in source["rows"]]
FEWEST = 30
MOST = 20
Event = tuple[object, ...]


def events(actions: tuple[Action, ...]) -> list[Event]:
    """What a desktop notices, each step of it."""
    found = [event for action in actions for event in _events(action)]
    return [event for event in found if event != ("wait",)] or found


def _events(action: Action) -> Iterator[Event]:
    held = (*action.modifiers, *(action.keys if action.kind in (K.KEY, K.KEY_DOWN) else ()))
    for _ in range(action.presses if action.kind is K.KEY else 1):
        yield from (("down", key) for key in held)
        if action.kind is K.KEY:
            yield from (("up", key) for key in reversed(held))
    if action.kind is K.KEY_UP:
        yield from (("up", key) for key in action.keys)
    elif action.kind in (K.TYPE, K.PASTE):
        text = action.text or ""
        yield ("text", text.rstrip("\n"))
        yield from [("down", "Return"), ("up", "Return")] * (len(text) - len(text.rstrip("\n")))
    elif action.kind is K.DRAG:
        yield from [("move", action.x, action.y)] if action.x is not None else []
        yield ("drag", action.button, action.to_x, action.to_y)
    elif action.kind is K.SCROLL:
        yield ("scroll", action.x, action.y, action.scroll_x, action.scroll_y)
    elif action.kind in (K.WAIT, K.TERMINATE):
        yield (action.kind.value, *([action.status] if action.status else []))
    elif action.kind not in (K.KEY, K.KEY_DOWN):
        yield (action.kind.value, action.x, action.y, action.presses, action.button)
    if action.modifiers:
        yield from (("up", key) for key in reversed(action.modifiers))


def are_alike(ours: list[Event], theirs: list[Event]) -> bool:
    return len(ours) == len(theirs) and all(
        len(one) == len(other) and all(map(_is_near, one, other))
        for one, other in zip(ours, theirs, strict=True)
    )


def _is_near(one: object, other: object) -> bool:
    return one == other or (isinstance(one, int) and isinstance(other, int) and abs(one - other) <= 1)


def compared(source: dict, row: dict) -> tuple[list[Event] | str, list[Event]]:
    """(ours or our error, theirs)"""
    space, image = CoordinateSpace(source["space"]), source["image"]
    screen = tuple(source["screen"])
    ours = parse_completion(
        row["text"],
        dialect=source["dialect"],
        space=space,
        screen=screen,
        image=tuple(image) if image else None,
        most=MOST,
    )
    theirs = parse_completion(
        row["theirs"], dialect="pyautogui", space=CoordinateSpace.SCREEN, screen=screen, most=MOST
    )
    assert theirs.error is None, f"{row['theirs']}: {theirs.error}"
    return ours.error or events(ours.actions), events(theirs.actions)


@pytest.mark.parametrize(("source", "row"), ROWS, ids=lambda value: value.get("text", "")[-40:])
def test_a_completion_means_what_its_authors_parser_makes_of_it(source, row):
    ours, theirs = compared(source, row)
    is_alike = isinstance(ours, list) and are_alike(ours, theirs)
    assert is_alike != ("decision" in row), f"ours {ours}, theirs {theirs}"


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source["dialect"])
def test_enough_of_them_are_alike(source):
    assert sum("decision" not in row for row in source["rows"]) >= FEWEST
    assert source["source"]
