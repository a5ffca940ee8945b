"""Importers: a folder of task JSON, an OSWorld checkout, or a Slime-OSWorld parquet -> `Task`s.

Every task gets a split; where the source names none, a hash of its id decides, so that the same task
falls on the same side in every import. The two splits never share a task.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from training.contracts.types import Task

OSWORLD_SCREEN = (1920, 1080)
EXAMPLES = Path("evaluation_examples") / "examples"
Split = Literal["train", "heldout"]
SPLIT_NAMES: dict[str, Split] = {"train": "train", "test": "heldout", "heldout": "heldout"}


class LoadError(ValueError):
    """Raised when a source cannot be read; the message names the file and the field."""


def load_tasks(
    path: Path, *, heldout_fraction: float = 0.2, screen: tuple[int, int] = OSWORLD_SCREEN
) -> list[Task]:
    """All tasks of a source, whichever of the three it is, in a stable order. Raises LoadError."""
    if path.is_dir():
        found = list(_folder(path, heldout_fraction, screen))
    elif path.suffix == ".parquet":
        found = list(_parquet(path, heldout_fraction, screen))
    elif path.suffix == ".json":
        found = [_json_file(path, path.parent, heldout_fraction, screen)]
    else:
        raise LoadError(f"{path}: neither a folder nor a .parquet nor a .json file")
    if not found:
        raise LoadError(f"{path}: no tasks found; expected *.json with id and instruction, or *.parquet")
    _refuse_repeats(path, found)
    return found


def _folder(path: Path, heldout_fraction: float, screen: tuple[int, int]) -> Iterator[Task]:
    """An OSWorld checkout (its examples only), a folder of parquet files, or any folder of task JSON."""
    root = path / EXAMPLES if (path / EXAMPLES).is_dir() else path
    parquets = sorted(root.glob("*.parquet"))
    if parquets:
        for file in parquets:
            yield from _parquet(file, heldout_fraction, screen)
        return
    for file in sorted(root.rglob("*.json")):
        if root != path or _looks_like_task(file):
            yield _json_file(file, root, heldout_fraction, screen)


def _looks_like_task(file: Path) -> bool:
    """Indexes and notes lie beside tasks; a file without an evaluator is none. Raises LoadError."""
    values = _read_json(file)
    return isinstance(values, dict) and "evaluator" in values


def _json_file(file: Path, root: Path, heldout_fraction: float, screen: tuple[int, int]) -> Task:
    family = file.parent.name if file.parent != root else ""
    return task_from_osworld(
        _read_json(file), where=str(file), family=family, heldout_fraction=heldout_fraction, screen=screen
    )


def _read_json(file: Path) -> Any:
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        raise LoadError(f"{file}: not readable as JSON: {error}") from error


def _parquet(file: Path, heldout_fraction: float, screen: tuple[int, int]) -> Iterator[Task]:
    """Slime-OSWorld's columns: task_config (JSON text) and optionally task_id, domain, instruction."""
    import pyarrow
    import pyarrow.parquet

    try:
        table = pyarrow.parquet.read_table(file)
    except (pyarrow.ArrowException, OSError) as error:
        raise LoadError(f"{file}: not readable as parquet: {error}") from error
    if "task_config" not in table.column_names:
        raise LoadError(f"{file}: column task_config is missing; columns: {', '.join(table.column_names)}")
    for number, row in enumerate(table.to_pylist()):
        where = f"{file} row {number}"
        values = _row_config(row, where)
        split = SPLIT_NAMES.get(file.stem)
        if split:
            values.setdefault("split", split)
        yield task_from_osworld(
            values,
            where=where,
            family=str(row.get("domain") or ""),
            heldout_fraction=heldout_fraction,
            screen=screen,
        )


def _row_config(row: dict[str, Any], where: str) -> dict[str, Any]:
    """The task JSON of a row, with the row's own id and instruction where the JSON has none."""
    config = row["task_config"]
    try:
        values = json.loads(config) if isinstance(config, str) and config else config or {}
    except ValueError as error:
        raise LoadError(f"{where}: task_config is not JSON: {error}") from error
    if not isinstance(values, dict):
        raise LoadError(f"{where}: task_config must be a JSON object")
    for key, column in (("id", "task_id"), ("instruction", "instruction")):
        if row.get(column):
            values.setdefault(key, row[column])
    return values


def task_from_osworld(
    values: Any,
    *,
    where: str,
    family: str = "",
    heldout_fraction: float = 0.2,
    screen: tuple[int, int] = OSWORLD_SCREEN,
) -> Task:
    """One OSWorld task JSON, which may also hold our own family, level, split, screen, oracle, max_turns.

    Other keys (snapshot, source, related_apps ...) describe the task and are left out. Raises LoadError.
    """
    if not isinstance(values, dict):
        raise LoadError(f"{where}: a task must be a JSON object")
    task_id = values.get("id") or values.get("task_id")
    if not task_id:
        raise LoadError(f"{where}: id is missing")
    if not isinstance(values.get("instruction"), str):
        raise LoadError(f"{where}: instruction is missing")
    own = {key: values[key] for key in ("level", "oracle", "max_turns") if key in values}
    try:
        return Task(
            task_id=str(task_id),
            instruction=values["instruction"],
            family=str(values.get("family") or family),
            split=values.get("split") or split_of(str(task_id), heldout_fraction),
            config=tuple(values.get("config") or ()),
            evaluator=values.get("evaluator") or {},
            screen=tuple(values.get("screen") or screen),
            **own,
        )
    except (ValidationError, TypeError) as error:
        raise LoadError(f"{where}: {_first_problem(error)}") from error


def _first_problem(error: ValidationError | TypeError) -> str:
    if isinstance(error, ValidationError):
        item = error.errors()[0]
        return f"{'.'.join(map(str, item['loc']))}: {item['msg']}"
    return str(error)


def split_of(task_id: str, heldout_fraction: float) -> Split:
    """Side of a task by its id alone."""
    digest = hashlib.sha256(task_id.encode()).digest()
    return "heldout" if int.from_bytes(digest[:4], "big") < heldout_fraction * 2**32 else "train"


def _refuse_repeats(path: Path, tasks: list[Task]) -> None:
    """One id once: a repeat would put one task in both splits, or hide another."""
    seen: set[str] = set()
    for task in tasks:
        if task.task_id in seen:
            raise LoadError(f"{path}: task id {task.task_id} occurs twice; ids must be unique in a task set")
        seen.add(task.task_id)


def to_osworld(task: Task) -> dict[str, Any]:
    """The inverse of `task_from_osworld`: a file that another import reads back to the same task."""
    values = task.model_dump(mode="json")
    return {"id": values.pop("task_id"), **values}
