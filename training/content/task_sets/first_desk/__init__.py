"""The task set first-desk: small desktops that a model of a million parameters can learn on.

    menu    level 1  keyboard   highlight a row of a list; where it starts is only in the pixels
    note    level 1  keyboard   type two words into an editor and save
    colour  level 2  pointing   click the button of the named colour
    form    level 3  both       type a word into a field, then click the button of the named colour
    answer, replace, rename     level 4, three real programs: `training.content.task_sets.first_desk.level_4`

Everything follows from the seed: task N of a family is the same whatever the counts are. Widget
centres in `task.oracle["widgets"]` are computed from the same numbers that place the windows.
"""

import itertools
import random
from typing import Any

from training.content.task_sets.first_desk.panel_window import Panel, Widget, panel_evaluator, panel_step
from training.content.task_sets.steps_and_evaluators import (
    DONE,
    file_holds,
    place_window,
    press_keys,
    setup_step,
    type_text,
)
from training.content.task_sets.task_family import (
    COLOURS,
    NOUNS,
    SCREEN,
    Family,
    Problem,
    Split,
    family_tasks,
    unseen_pairs,
)
from training.contracts.types import Action, ActionKind, Task

NUM_ROWS = 6
MAX_MOVES = 3
NOTE_FILE = "/home/user/note.txt"

__all__ = ["COLOURS", "FAMILIES", "NOUNS", "SCREEN", "Split", "family_tasks", "generate"]


def generate(seed: int = 0) -> list[Task]:
    """The tasks of levels 1 to 3; no problem occurs twice, in either split."""
    return [task for family in FAMILIES for task in family_tasks(family, seed)]


# -- menu -------------------------------------------------------------------------------------

MENU_WIDTH, ROW_HEIGHT = 240, 48


def build_menu(rng: random.Random, split: Split) -> Problem:
    """Only arrows move the row and they wrap around: no blind run of keys finds a known row."""
    target = rng.randrange(NUM_ROWS)
    start = rng.choice([row for row in range(NUM_ROWS) if abs(row - target) <= MAX_MOVES])
    names = [f"Row {row + 1}" for row in range(NUM_ROWS)]
    height = NUM_ROWS * ROW_HEIGHT
    listing = Widget(
        "rows", "list", 0, 0, MENU_WIDTH, height, rows=tuple(names), selected=start, arrows_only=True
    )
    panel = Panel(
        title="Menu",
        x=rng.randrange(8, SCREEN[0] - MENU_WIDTH - 8, 4),
        y=rng.randrange(32, SCREEN[1] - height - 8, 4),
        width=MENU_WIDTH,
        height=height,
        widgets=(listing,),
        close_on=("submit",),
    )
    move = Action(kind=ActionKind.KEY, keys=("Down" if target > start else "Up",))
    enter = Action(kind=ActionKind.KEY, keys=("Return",))
    rows = [
        {"name": name.lower(), **panel.centre(listing, top=row * ROW_HEIGHT, height=ROW_HEIGHT)}
        for row, name in enumerate(names)
    ]
    return Problem(
        instruction=f"Choose row {target + 1}.",
        config=(panel_step(panel),),
        evaluator=panel_evaluator([(["closed_by"], "submit"), (["selected", "rows"], target)]),
        actions=(*itertools.repeat(move, abs(target - start)), enter, DONE),
        widgets=(*rows, {**rows[start], "name": "highlighted row"}),
    )


# -- note -------------------------------------------------------------------------------------


def build_note(rng: random.Random, split: Split) -> Problem:
    """Held-out phrases are unseen pairs of seen words."""
    phrase = " ".join(rng.choice(unseen_pairs(list(COLOURS), NOUNS, split)))
    width, height = rng.randrange(340, 420, 20), rng.randrange(200, 280, 20)
    x, y = rng.randrange(4, SCREEN[0] - width - 12, 4), rng.randrange(28, SCREEN[1] - height - 12, 4)
    return Problem(
        instruction=f'Type "{phrase}" and save.',
        config=open_note("", (x, y, width, height)),
        evaluator=file_holds(NOTE_FILE, phrase, wait_s=0.3),
        actions=(type_text(phrase), press_keys("ctrl", "s"), DONE),
        widgets=({"name": "note", "x": x + width // 2, "y": y + height // 2},),
    )


def open_note(text: str, box: tuple[int, int, int, int]) -> tuple[dict[str, Any], ...]:
    """Setup steps: the text editor on a file that holds `text`."""
    x, y, width, height = box
    return (
        setup_step("write_file", path=NOTE_FILE, content=text),
        setup_step("launch", command=["mousepad", NOTE_FILE]),
        place_window("note.txt", box),
        setup_step("wait_color", x=x + width // 2, y=y + height // 2, color="#ffffff"),
    )


# -- colour and form --------------------------------------------------------------------------

BOARD_WIDTH, BOARD_HEIGHT = 480, 330
CELL_WIDTH, CELL_HEIGHT = BOARD_WIDTH // 4, BOARD_HEIGHT // 3


def build_colour(rng: random.Random, split: Split) -> Problem:
    """Three to five buttons in a jittered 4 x 3 grid; any press closes the window."""
    cells = rng.sample(list(itertools.product(range(4), range(3))), rng.randint(3, 5))
    buttons = [_button(rng, name, *cell) for name, cell in zip(_colours(rng, len(cells)), cells, strict=True)]
    panel = _board(rng, "Colours", tuple(buttons))
    target = rng.choice(buttons)
    return Problem(
        instruction=f"Click the {target.id} button.",
        config=(panel_step(panel),),
        evaluator=panel_evaluator([(["pressed"], [target.id])]),
        actions=(_click(panel, target), DONE),
        widgets=_named(panel, buttons),
    )


def build_form(rng: random.Random, split: Split) -> Problem:
    """An entry above two or three buttons; it has the focus from the start."""
    cells = rng.sample(list(itertools.product(range(4), (1, 2))), rng.randint(2, 3))
    buttons = [_button(rng, name, *cell) for name, cell in zip(_colours(rng, len(cells)), cells, strict=True)]
    entry = Widget(
        id="field",
        kind="entry",
        x=rng.randrange(16, 200, 4),
        y=rng.randrange(20, 52, 4),
        width=256,
        height=44,
    )
    panel = _board(rng, "Form", (entry, *buttons))
    target, word = rng.choice(buttons), rng.choice(NOUNS)
    return Problem(
        instruction=f'Type "{word}" then click the {target.id} button.',
        config=(panel_step(panel),),
        evaluator=panel_evaluator([(["pressed"], [target.id]), (["fields", "field"], word)]),
        actions=(Action(kind=ActionKind.TYPE, text=word), _click(panel, target), DONE),
        widgets=(*_named(panel, buttons), {"name": "field", **panel.centre(entry)}),
    )


def _colours(rng: random.Random, count: int) -> list[str]:
    return rng.sample(list(COLOURS), count)


def _button(rng: random.Random, name: str, column: int, row: int) -> Widget:
    """A button of at least 90 x 74 pixels somewhere in its cell."""
    width, height = rng.randrange(92, CELL_WIDTH - 7, 4), rng.randrange(74, CELL_HEIGHT - 7, 4)
    return Widget(
        id=name,
        kind="button",
        color=COLOURS[name],
        focusable=False,
        x=column * CELL_WIDTH + rng.randrange(2, CELL_WIDTH - width - 1, 2),
        y=row * CELL_HEIGHT + rng.randrange(2, CELL_HEIGHT - height - 1, 2),
        width=width,
        height=height,
    )


def _board(rng: random.Random, title: str, widgets: tuple[Widget, ...]) -> Panel:
    return Panel(
        title=title,
        x=rng.randrange(4, SCREEN[0] - BOARD_WIDTH - 4, 2),
        y=rng.randrange(26, SCREEN[1] - BOARD_HEIGHT - 4, 2),
        width=BOARD_WIDTH,
        height=BOARD_HEIGHT,
        widgets=widgets,
        close_on=tuple(widget.id for widget in widgets if widget.kind == "button"),
    )


def _click(panel: Panel, widget: Widget) -> Action:
    centre = panel.centre(widget)
    return Action(kind=ActionKind.CLICK, x=centre["x"], y=centre["y"])


def _named(panel: Panel, buttons: list[Widget]) -> tuple[dict[str, Any], ...]:
    return tuple({"name": f"{button.id} button", **panel.centre(button)} for button in buttons)


FAMILIES = (
    Family("menu", 1, 6, 150, 24, build_menu),
    Family("note", 1, 4, 150, 24, build_note),
    Family("colour", 2, 3, 400, 24, build_colour),
    Family("form", 3, 4, 150, 24, build_form),
)
