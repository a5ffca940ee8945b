"""The list of planted changes, `changes/AREA.toml`.

    room = ["tests/training"]            # tried, with --wide, when a file's own tests notice nothing

    [[file]]
    path = "training/update/losses/kl.py"
    tests = ["tests/training/update/test_losses.py"]
    postgres = true                      # SQL decides: must be noticed on PostgreSQL, too
    changes = [
      ['x + 1', 'x - 1'],
      ['x < 1', 'x <= 1', 'why nothing can notice it'],
    ]

What a change replaces stands exactly once in its file.
"""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]
CHANGES = Path(__file__).with_name("changes")


class BadList(ValueError):
    """Raised when the list does not fit the tree; names the list, the file and the change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plant:
    """One change of one file."""

    area: str
    path: str
    old: str
    new: str
    tests: tuple[str, ...]
    """Those of its own, from the quickest on."""
    room: tuple[str, ...]
    on_postgres: bool
    reason: str
    """Why nothing can notice it; "" = something must."""

    @property
    def shown(self) -> str:
        """In one line."""
        return " -> ".join(" ".join(text.split()) or "nothing" for text in (self.old, self.new))

    def mutated(self, tree: Path) -> str:
        """The file's text with the change. Raises BadList."""
        where = f"{self.area}.toml, {self.path}, {self.shown!r}"
        path = tree / self.path
        text = path.read_text() if path.is_file() else ""
        if (number := text.count(self.old)) != 1:
            raise BadList(f"{where}: the old text stands {number} times in the file; write the change anew")
        changed = text.replace(self.old, self.new)
        try:
            is_same = ast.dump(ast.parse(changed)) == ast.dump(ast.parse(text))
        except SyntaxError as error:
            raise BadList(f"{where}: {error}") from error
        if is_same:
            raise BadList(f"{where}: changes no code")
        return changed


def planted(changes: Path = CHANGES) -> list[Plant]:
    """Every change, by area. Raises BadList for a list that cannot be read."""
    return [plant for path in sorted(changes.glob("*.toml")) for plant in _of_area(path)]


def _of_area(path: Path) -> Iterator[Plant]:
    try:
        found: dict[str, Any] = tomllib.loads(path.read_text())
        for file in found["file"]:
            for old, new, *reason in file["changes"]:
                yield Plant(
                    area=path.stem,
                    path=file["path"],
                    old=old,
                    new=new,
                    tests=tuple(file["tests"]),
                    room=tuple(found["room"]),
                    on_postgres=file.get("postgres", False),
                    reason=reason[0] if reason else "",
                )
    except (KeyError, ValueError, TypeError) as error:
        raise BadList(f"{path.name}: {error!r}") from error
