"""Which files of an OSWorld checkout are tasks.

Its index `test_all.json` ({domain: [id, ...]}) names them; `examples/DOMAIN/ID.json` holds each. Several
domains hold a task under the same id, so a task is known by domain and id.
Source: https://github.com/xlang-ai/OSWorld, folder evaluation_examples.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from training.tasks.task_json import LoadError

EXAMPLES = "examples"
INDEX = "test_all.json"
HERE = (Path("evaluation_examples"), Path())
"""Where `examples` lies below the path that people give."""


@dataclass(frozen=True, slots=True)
class CheckoutFile:
    """A task's file, which may be missing."""

    domain: str
    file: Path


def checkout_files(path: Path) -> list[CheckoutFile] | None:
    """The task files of a checkout, of its evaluation_examples, or of one index; None for other sources.

    Without an index, every file of a domain's folder is a task. Raises LoadError for an unreadable index.
    """
    if path.is_file():
        values = _index(path) if path.suffix == ".json" and (path.parent / EXAMPLES).is_dir() else None
        return None if values is None else _listed(path.parent / EXAMPLES, values)
    for folder in (path / part for part in HERE):
        if not (folder / EXAMPLES).is_dir():
            continue
        if not (folder / INDEX).is_file():
            return [CheckoutFile(file.parent.name, file) for file in _below(folder / EXAMPLES)]
        values = _index(folder / INDEX)
        if values is None:
            raise LoadError(f"{folder / INDEX}: expected an object of domains with lists of ids")
        return _listed(folder / EXAMPLES, values)
    return None


def _below(examples: Path) -> list[Path]:
    """Files directly in `examples` are templates."""
    return sorted(examples.glob("*/*.json"))


def _listed(examples: Path, index: dict[str, list[str]]) -> list[CheckoutFile]:
    return [
        CheckoutFile(domain, examples / domain / f"{name}.json")
        for domain, names in index.items()
        for name in names
    ]


def _index(file: Path) -> dict[str, list[str]] | None:
    """{domain: [id, ...]} of an index; None when the file is JSON of another kind."""
    try:
        values = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        raise LoadError(f"{file}: not readable as JSON: {error}") from error
    if not isinstance(values, dict) or not values:
        return None
    named = all(
        isinstance(names, list) and all(isinstance(name, str) and "/" not in name for name in names)
        for names in values.values()
    )
    return values if named else None
