"""An accessibility tree as the viewer shows it: rows in the document's order, with what changed in them."""

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from training.observations.widget_tree import Widget, widgets_of

MAX_ROWS = 5_000
MAX_WORDS = 300
"""Characters of each name and text."""
SHOWN_STATES = ("focused", "checked", "selected", "pressed", "expanded", "editable")


class TreeRow(NamedTuple):
    depth: int
    role: str
    name: str
    text: str
    box: tuple[int, int, int, int] | None
    """Left, top, width and height, pixels of the screen."""
    states: tuple[str, ...]
    key: int
    """The same for the same place in the tree: its parents, role, name, and number among its likes."""

    @property
    def content(self) -> tuple[object, ...]:
        """What may change in a place."""
        return self.text, self.box, self.states


class TreeChange(NamedTuple):
    """A tree against that of the turn before."""

    marks: list[str]
    """"", "added" or "changed" of each row."""
    removed: list[TreeRow]


def tree_rows(xml: str) -> tuple[list[TreeRow], int]:
    """The first rows, and how many widgets there are beyond them. Raises BadTree."""
    rows = list(_walk(xml))
    return rows[:MAX_ROWS], max(0, len(rows) - MAX_ROWS)


def _walk(xml: str) -> Iterator[TreeRow]:
    root = next(widgets_of(xml))
    stack = [(root.element, 0, hash(root.role))]
    while stack:
        element, depth, key = stack.pop()
        yield _row(Widget(element, root.system), depth, key)
        counts: Counter[tuple[str, str]] = Counter()
        children = []
        for child in element:
            likes = (child.tag, child.get("name", ""))
            children.append((child, depth + 1, hash((key, likes, counts[likes]))))
            counts[likes] += 1
        stack.extend(reversed(children))


def _row(widget: Widget, depth: int, key: int) -> TreeRow:
    states = tuple(state for state in SHOWN_STATES if widget.has_state(state))
    return TreeRow(
        depth, widget.role, widget.name[:MAX_WORDS], widget.text[:MAX_WORDS], widget.box, states, key
    )


def tree_change(before: list[TreeRow], after: list[TreeRow]) -> TreeChange:
    """Which rows are new, which say something else, and which are gone."""
    was, now = {row.key: row for row in before}, {row.key for row in after}
    marks = [
        "added" if row.key not in was else "changed" if was[row.key].content != row.content else ""
        for row in after
    ]
    return TreeChange(marks, [row for row in before if row.key not in now])
