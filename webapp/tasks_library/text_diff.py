"""What changed between two versions of a task, line by line."""

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

CONTEXT = 2
"""Unchanged lines around a change."""
MAX_LINES = 4000


@dataclass(frozen=True, slots=True)
class Line:
    kind: Literal["same", "removed", "added", "gap"]
    text: str

    @property
    def mark(self) -> str:
        return {"removed": "-", "added": "+"}.get(self.kind, " ")


def diff_lines(before: str, after: str) -> list[Line]:
    """Changes with a little around them; empty when nothing differs."""
    old, new = before.splitlines()[:MAX_LINES], after.splitlines()[:MAX_LINES]
    groups = SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(CONTEXT)
    return [line for place, group in enumerate(groups) for line in _group(group, old, new, place > 0)]


def _group(
    group: list[tuple[str, int, int, int, int]], old: list[str], new: list[str], is_later: bool
) -> Iterator[Line]:
    if is_later:
        yield Line("gap", "…")
    for tag, old_from, old_to, new_from, new_to in group:
        if tag == "equal":
            yield from (Line("same", text) for text in old[old_from:old_to])
            continue
        yield from (Line("removed", text) for text in old[old_from:old_to])
        yield from (Line("added", text) for text in new[new_from:new_to])
