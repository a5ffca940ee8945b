"""Which files of an OSWorld checkout are tasks.

Its index `test_all.json` ({domain: [id, ...]}) names them; `examples/DOMAIN/ID.json` holds each. Several
domains hold a task under the same id, so a task is known by domain and id.
Sources: https://github.com/xlang-ai/OSWorld, folder evaluation_examples; WindowsAgentArena-V2 has the same in
https://github.com/GAIR-NLP/WindowsAgentArena-V2, its parts of an index in a folder concurrent_eval.
"""

from dataclasses import dataclass
from pathlib import Path

from training.tasks.json_files import read_json
from training.tasks.task_json import LoadError

EXAMPLES = "examples"
INDEX = "test_all.json"
WINDOWS = Path("evaluation_examples_windows")
HERE = (Path("evaluation_examples"), WINDOWS, Path("src/win-arena-container/client") / WINDOWS, Path())
"""Where `examples` lies below the path that people give: OSWorld's, WindowsAgentArena-V2's, or just there."""


@dataclass(frozen=True, slots=True)
class CheckoutFile:
    """A task's file, which may be missing."""

    domain: str
    file: Path


def checkout_files(path: Path) -> list[CheckoutFile] | None:
    """The task files of a checkout, of its evaluation_examples, its examples, or one index; None for others.

    Without an index, and in a folder of examples by itself, every file of a domain's folder is a task. Raises
    LoadError for an unreadable index.
    """
    if path.is_file():
        beside = next((up / EXAMPLES for up in path.parents[:2] if (up / EXAMPLES).is_dir()), None)
        values = _index(path) if beside and path.suffix == ".json" else None
        return None if beside is None or values is None else _listed(beside, values)
    if path.resolve().name.partition("_")[0] == EXAMPLES and (files := _below(path)):
        return files
    for folder in (path / part for part in HERE):
        if not (folder / EXAMPLES).is_dir():
            continue
        if not (folder / INDEX).is_file():
            return _below(folder / EXAMPLES)
        values = _index(folder / INDEX)
        if values is None:
            raise LoadError(f"{folder / INDEX}: expected an object of domains with lists of ids")
        return _listed(folder / EXAMPLES, values)
    return None


def _below(examples: Path) -> list[CheckoutFile]:
    """Files directly in `examples` are templates."""
    nested = (file for file in examples.glob("*/*/*.json") if file.stem == file.parent.name)
    return [
        CheckoutFile(file.relative_to(examples).parts[0], file)
        for file in sorted({*examples.glob("*/*.json"), *nested})
    ]


def _listed(examples: Path, index: dict[str, list[str]]) -> list[CheckoutFile]:
    return [
        CheckoutFile(domain, _task_file(examples / domain, name))
        for domain, names in index.items()
        for name in names
    ]


def _task_file(domain: Path, name: str) -> Path:
    """ID.json, or as Spider2-V has it ID/ID.json beside the task's other files."""
    nested = domain / name / f"{name}.json"
    return nested if nested.is_file() else domain / f"{name}.json"


def _index(file: Path) -> dict[str, list[str]] | None:
    """{domain: [id, ...]} of an index; None when the file is JSON of another kind."""
    try:
        values = read_json(file.read_bytes())
    except (ValueError, OSError) as error:
        raise LoadError(f"{file}: not readable as JSON: {error}") from error
    if not isinstance(values, dict) or not values:
        return None
    named = all(
        isinstance(names, list) and all(isinstance(name, str) and "/" not in name for name in names)
        for names in values.values()
    )
    return values if named else None
