"""The defences that attacks try: each is turned off by changes of a copy of the tree."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from scripts.mutants.planted import Plant
from scripts.mutants.tree_copy import TreeCopy


def read_defences() -> dict[str, list[Plant]]:
    """Defence -> what turns it off."""
    listed = tomllib.loads(Path(__file__).with_name("defences.toml").read_text())
    return {one["name"]: [_plant(*change) for change in one["changes"]] for one in listed["defence"]}


def _plant(path: str, old: str, new: str) -> Plant:
    shared = {"area": "hostile hosts", "tests": (), "room": (), "on_postgres": False, "reason": ""}
    return Plant(path=path, old=old, new=new, **shared)  # type: ignore[arg-type]


DEFENCES = read_defences()


@contextmanager
def turned_off(copy: TreeCopy, defence: str) -> Iterator[None]:
    """The copy lacks it meanwhile."""
    with ExitStack() as stack:
        for plant in DEFENCES[defence]:
            stack.enter_context(copy.with_change(plant))
        yield
