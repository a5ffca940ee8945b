"""Windows of smoldesk: widgets in a grid, as `deskhand-widgets` shows them, and how they are judged."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from training.content.task_sets.smoldesk.words import Words
from training.content.task_sets.steps_and_evaluators import place_window, setup_step
from training.contracts.types import Action, ActionKind

SCREEN = (1024, 768)
FOLDER = "/home/user/.deskhand"
RESULT_FILE = f"{FOLDER}/result.json"
SPEC_FILE = f"{FOLDER}/spec.json"
WIDTH, HEIGHT = 130, 34
"""Of a widget, pixels; a field's name stands left of it."""
LEFT, TOP = 110, 12
"""Of the window, beyond its first widget."""


@dataclass(kw_only=True, slots=True)
class Widget:
    """One thing in a window; its place is that of its content, in pixels of the screen."""

    kind: str
    """button | entry | check | row | page"""
    name: str
    text: str = ""
    on: bool = False
    note: str = ""
    x: int = 0
    y: int = 0

    def click(self) -> Action:
        return Action(kind=ActionKind.CLICK, x=self.x + WIDTH // 2, y=self.y + HEIGHT // 2)


@dataclass(slots=True)
class Grid:
    """Where the widgets of a window stand: held-out ones have more columns, further right and wider."""

    columns: int
    x: int
    y: int
    dx: int
    dy: int

    @classmethod
    def of(cls, rng: random.Random, *, is_train: bool) -> Grid:
        if is_train:
            return cls(
                rng.choice((1, 2)),
                rng.randrange(130, 230),
                rng.randrange(50, 120),
                rng.randrange(260, 340),
                rng.randrange(40, 46),
            )
        return cls(
            rng.choice((2, 3)),
            rng.randrange(235, 330),
            rng.randrange(90, 200),
            rng.randrange(240, 270),
            rng.randrange(46, 58),
        )

    def place(self, widgets: Sequence[Widget]) -> None:
        """Rows of a list stand together below the others, without gaps."""
        others = [widget for widget in widgets if widget.kind != "row"]
        for number, widget in enumerate(others):
            widget.x = self.x + self.dx * (number % self.columns)
            widget.y = self.y + self.dy * (number // self.columns)
        below = self.y + self.dy * -(-len(others) // self.columns)
        for number, widget in enumerate(widget for widget in widgets if widget.kind == "row"):
            widget.x, widget.y = self.x, below + HEIGHT * number


@dataclass(kw_only=True, slots=True)
class Desk:
    """What a builder of tasks has: its words, and the widgets of the window that it makes."""

    rng: random.Random
    words: Words
    is_train: bool
    grid: Grid = field(init=False)

    def __post_init__(self) -> None:
        self.grid = Grid.of(self.rng, is_train=self.is_train)

    def value(self) -> str:
        """A word or a number of this split."""
        if self.rng.random() < 0.5:
            return self.rng.choice(self.words.values)
        return self.number()

    def number(self) -> str:
        sevens = self.rng.randrange(15, 14_000)
        return str(7 * sevens + self.rng.choice(self.words.remainders))

    def some(self, names: Sequence[str], least: int, most: int) -> list[str]:
        return self.rng.sample(names, self.rng.randint(least, most))

    def buttons(self, least: int, most: int) -> list[Widget]:
        return [Widget(kind="button", name=name) for name in self.some(self.words.buttons, least, most)]

    def entries(self, least: int, most: int) -> list[Widget]:
        """Some are filled in already."""
        return [
            Widget(kind="entry", name=name, text="" if self.rng.random() < 0.7 else self.value())
            for name in self.some(self.words.fields, least, most)
        ]

    def checks(self, least: int, most: int) -> list[Widget]:
        return [
            Widget(kind="check", name=name, on=self.rng.random() < 0.5)
            for name in self.some(self.words.switches, least, most)
        ]

    def rows(self, least: int, most: int) -> list[Widget]:
        return [Widget(kind="row", name=name) for name in self.some(self.words.items, least, most)]

    def window(self, *pages: tuple[str, list[Widget]]) -> tuple[dict[str, Any], ...]:
        """Set-up steps: one window with these pages, the first one in front."""
        for _, widgets in pages:
            self.grid.place(widgets)
        every = [widget for _, widgets in pages for widget in widgets]
        left, top = self.grid.x - LEFT, self.grid.y - TOP
        width = max(widget.x for widget in every) + WIDTH + TOP - left
        height = max(widget.y for widget in every) + HEIGHT + TOP - top
        title = pages[0][0]
        spec = {
            "title": title,
            "width": width,
            "height": height,
            "pages": [
                {"title": name, "widgets": list(_specs(widgets, left, top))} for name, widgets in pages
            ],
        }
        return (
            setup_step("write_file", path=SPEC_FILE, content=json.dumps(spec)),
            setup_step("launch", command=["deskhand-widgets", SPEC_FILE, RESULT_FILE]),
            place_window(title, (left, top, width, height)),
        )


def _specs(widgets: Sequence[Widget], left: int, top: int) -> Iterator[dict[str, Any]]:
    rows = [widget for widget in widgets if widget.kind == "row"]
    size = {"width": WIDTH, "height": HEIGHT}
    for widget in widgets:
        if widget.kind == "row":
            continue
        spec = {"kind": widget.kind, "name": widget.name, "x": widget.x - left, "y": widget.y - top, **size}
        if widget.kind == "entry":
            spec["text"] = widget.text
        if widget.kind == "check":
            spec["on"] = widget.on
        yield spec
    if rows:
        items = [{"name": row.name, "note": row.note} for row in rows]
        yield {"kind": "rows", "name": "", "x": rows[0].x - left, "y": rows[0].y - top, **size, "rows": items}


def result_is(**expected: Any) -> dict[str, Any]:
    """Evaluator: these parts of what the window recorded, each whole."""
    return {
        "func": "check_json",
        "result": {"type": "vm_file", "path": RESULT_FILE, "dest": "result.json"},
        "expected": {
            "type": "rule",
            "rules": {
                "expect": [{"key": [key], "method": "eq", "ref": value} for key, value in expected.items()]
            },
        },
        "wait_s": 0.2,
    }


def share_of_fields(fields: dict[str, str]) -> dict[str, Any]:
    """Evaluator: how many of the fields hold what they shall, of all."""
    each = [result_is() for _ in fields]
    for one, (name, value) in zip(each, fields.items(), strict=True):
        rules = [{"key": ["fields", name], "method": "eq", "ref": value}]
        one["expected"]["rules"]["expect"] = rules
    parts = {key: [one[key] for one in each] for key in ("func", "result", "expected")}
    return {**parts, "conj": "mean", "wait_s": each[0]["wait_s"]}


def state_is(
    widgets: Sequence[Widget],
    *,
    fields: dict[str, str] | None = None,
    checks: dict[str, bool] | None = None,
    pressed: Sequence[str] = (),
    **more: Any,
) -> dict[str, Any]:
    """Evaluator: the whole state is as it was but for what is named."""
    return result_is(
        fields={one.name: one.text for one in widgets if one.kind == "entry"} | (fields or {}),
        checks={one.name: one.on for one in widgets if one.kind == "check"} | (checks or {}),
        pressed=list(pressed),
        **{"rows": [one.name for one in widgets if one.kind == "row"]} | more,
    )
