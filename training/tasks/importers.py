"""Importers: task JSON (file or folder), an OSWorld checkout, Slime-OSWorld's parquet or JSONL -> `Task`s.

What cannot be read is refused on its own, with its place and its reason; the rest comes in.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from training.contracts.types import Task
from training.tasks.osworld_checkout import checkout_files
from training.tasks.task_json import LoadError, Split, task_from_osworld

SLIME_COLUMNS = ("task_config", "task_id", "domain", "instruction")
"""Of Slime-OSWorld's tables; the first one is needed, the others help."""
SPLIT_NAMES: dict[str, Split] = {"train": "train", "test": "heldout", "heldout": "heldout"}


@dataclass(frozen=True, slots=True)
class TaskFields:
    """A task's values as its source has them, not yet judged."""

    where: str
    """File, with the row of a parquet."""
    values: Any
    family: str = ""
    task_id: str = ""
    """Stands for the id of the values; "" keeps theirs."""


@dataclass(frozen=True, slots=True)
class LoadedTasks:
    """What a source held."""

    tasks: list[Task]
    refused: list[str]
    """Why each of the others was refused; each begins with its file."""


def load_tasks(path: Path, *, heldout_fraction: float = 0.2) -> LoadedTasks:
    """All tasks of a source in a stable order. Raises LoadError when not a single task can be read."""
    loaded = LoadedTasks([], [])
    first_at: dict[str, str] = {}
    for found in _source(path):
        try:
            if isinstance(found, LoadError):
                raise found
            task = _task(found, heldout_fraction)
        except LoadError as error:
            loaded.refused.append(str(error))
            continue
        if task.task_id in first_at:
            taken_by = first_at[task.task_id]
            loaded.refused.append(f"{found.where}: id: {task.task_id} is taken by {taken_by}")
            continue
        first_at[task.task_id] = found.where
        loaded.tasks.append(task)
    if not loaded.tasks:
        raise LoadError(
            loaded.refused[0]
            if loaded.refused
            else f"{path}: no tasks found; expected *.json with id and instruction, *.parquet or *.jsonl"
        )
    return loaded


def _task(found: TaskFields, heldout_fraction: float) -> Task:
    task = task_from_osworld(
        found.values, where=found.where, family=found.family, heldout_fraction=heldout_fraction
    )
    return task.model_copy(update={"task_id": found.task_id}) if found.task_id else task


def _source(path: Path) -> Iterator[TaskFields | LoadError]:
    """What is there, one by one; a LoadError stands for what could not be read."""
    checkout = checkout_files(path)
    if checkout is not None:
        yield from (
            _json_file(item.file, item.domain, f"{item.domain}.{item.file.stem}") for item in checkout
        )
    elif path.is_dir():
        yield from _folder(path)
    elif path.suffix in TABLES:
        yield from TABLES[path.suffix](path)
    elif path.suffix == ".json":
        yield _json_file(path)
    else:
        raise LoadError(f"{path}: neither a folder nor a .parquet, .jsonl or .json file")


def _folder(path: Path) -> Iterator[TaskFields | LoadError]:
    """A folder of tables, or of task JSON at any depth."""
    tables = sorted(file for file in path.iterdir() if file.suffix in TABLES)
    for file in tables:
        yield from TABLES[file.suffix](file)
    if tables:
        return
    for file in sorted(path.rglob("*.json")):
        found = _json_file(file, file.parent.name if file.parent != path else "")
        if isinstance(found, LoadError) or _looks_like_task(found.values):
            yield found


def _looks_like_task(values: Any) -> bool:
    """Indexes and notes lie beside tasks; a file without an evaluator is none."""
    return isinstance(values, dict) and "evaluator" in values


def _json_file(file: Path, family: str = "", task_id: str = "") -> TaskFields | LoadError:
    try:
        return TaskFields(str(file), json.loads(file.read_text(encoding="utf-8")), family, task_id)
    except (ValueError, OSError, RecursionError) as error:
        return LoadError(f"{file}: not readable as JSON: {error}")


def _jsonl(file: Path) -> Iterator[TaskFields | LoadError]:
    """A row a line, with the columns of the parquet; a line may also be a task's own JSON."""
    rows: list[dict[str, Any]] = []
    try:
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines()):
            if not line.strip():
                continue
            row = json.loads(line)
            if not isinstance(row, dict):
                raise ValueError(f"line {number + 1} is no object")
            rows.append(row if "task_config" in row else {"task_config": row})
    except (ValueError, OSError, RecursionError) as error:
        yield LoadError(f"{file}: not readable as JSONL: {error}")
        return
    yield from _rows(file, rows)


def _parquet(file: Path) -> Iterator[TaskFields | LoadError]:
    """Slime-OSWorld's columns: task_config (JSON text) and optionally task_id, domain, instruction."""
    import pyarrow
    import pyarrow.parquet

    try:
        names = pyarrow.parquet.read_schema(file).names
        columns = [name for name in SLIME_COLUMNS if name in names]
        table = pyarrow.parquet.read_table(file, columns=columns)
    except (pyarrow.ArrowException, OSError) as error:
        yield LoadError(f"{file}: not readable as parquet: {error}")
        return
    if "task_config" not in names:
        yield LoadError(f"{file}: column task_config is missing; columns: {', '.join(names)}")
        return
    yield from _rows(file, table.to_pylist())


def _rows(file: Path, rows: Iterable[dict[str, Any]]) -> Iterator[TaskFields | LoadError]:
    split = SPLIT_NAMES.get(file.stem)
    for number, row in enumerate(rows):
        where = f"{file} row {number}"
        try:
            values = _row_config(row, where)
        except LoadError as error:
            yield error
            continue
        if split:
            values.setdefault("split", split)
        yield TaskFields(where, values, str(row.get("domain") or ""))


def _row_config(row: dict[str, Any], where: str) -> dict[str, Any]:
    """The task JSON of a row, with the row's own id and instruction where the JSON has none."""
    config = row["task_config"]
    try:
        values = json.loads(config) if isinstance(config, str) and config else config or {}
    except (ValueError, RecursionError) as error:
        raise LoadError(f"{where}: task_config is not JSON: {error}") from error
    if not isinstance(values, dict):
        raise LoadError(f"{where}: task_config must be a JSON object")
    for key, column in (("id", "task_id"), ("instruction", "instruction")):
        if row.get(column):
            values.setdefault(key, row[column])
    return values


TABLES: dict[str, Callable[[Path], Iterator[TaskFields | LoadError]]] = {
    ".parquet": _parquet,
    ".jsonl": _jsonl,
}
"""Rows of Slime-OSWorld's columns, by how the file's name ends."""
