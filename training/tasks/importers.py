"""Importers: task JSON (file or folder), an OSWorld checkout, Slime-OSWorld's parquet or JSONL -> `Task`s.

What cannot be read is refused on its own, with its place and its reason; the rest comes in.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from training.contracts.types import Task
from training.tasks.json_files import numbered_lines, read_json
from training.tasks.osworld_checkout import checkout_files
from training.tasks.supported_by.operating_system import with_system_of_source
from training.tasks.task_json import LoadError, Split, task_from_osworld
from training.tasks.unusable_values import unusable
from training.untrusted.parquet import BadTable, read_rows

SLIME_COLUMNS = ("task_config", "task_id", "domain", "instruction")
"""Of Slime-OSWorld's tables; the first one is needed, the others help."""
MAX_TABLE_BYTES = 128 << 20
SPLIT_NAMES: dict[str, Split] = {"train": "train", "test": "heldout", "heldout": "heldout"}


@dataclass(frozen=True, slots=True)
class TaskFields:
    """A task's values as its source has them, not yet judged."""

    where: str
    """File, with the line of a .jsonl or the row of a parquet."""
    values: Any
    family: str = ""
    task_id: str = ""
    """Stands for the id of the values; "" keeps theirs."""
    file: Path | None = None
    """Of a task that has one of its own; its folder may say a system."""


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
            if problem := next(unusable(task), None):
                raise LoadError(f"{found.where}: {' '.join(problem)}", (problem,))
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
    task = task.model_copy(update={"task_id": found.task_id}) if found.task_id else task
    return with_system_of_source(task, found.file)


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
    """A folder of tables, or of task JSON at any depth.

    An id that tasks of several folders have is known by its folder, too: FOLDER.ID.
    """
    tables = sorted(file for file in path.iterdir() if file.suffix in TABLES)
    for file in tables:
        yield from TABLES[file.suffix](file)
    if tables:
        return
    files = sorted(path.rglob("*.json"))
    found = [
        (file.parent, _json_file(file, file.parent.name if file.parent != path else "")) for file in files
    ]
    folders: dict[str, set[Path]] = defaultdict(set)
    for folder, item in found:
        if isinstance(item, TaskFields) and _looks_like_task(item.values):
            folders[_id_of(item)].add(folder)
    for folder, item in found:
        if isinstance(item, LoadError):
            yield item
        elif _looks_like_task(item.values):
            where = ".".join(folder.relative_to(path).parts)
            is_shared = where and len(folders[_id_of(item)]) > 1
            yield replace(item, task_id=f"{where}.{_id_of(item)}") if is_shared else item


def _id_of(item: TaskFields) -> str:
    return str(item.values.get("id") or item.values.get("task_id") or "")


def _looks_like_task(values: Any) -> bool:
    """Indexes and notes lie beside tasks; a file without an evaluator is none."""
    return isinstance(values, dict) and "evaluator" in values


def _json_file(file: Path, family: str = "", task_id: str = "") -> TaskFields | LoadError:
    try:
        return TaskFields(str(file), read_json(file.read_bytes()), family, task_id, file)
    except (ValueError, OSError) as error:
        return LoadError(f"{file}: not readable as JSON: {error}")


def _jsonl(file: Path) -> Iterator[TaskFields | LoadError]:
    """A row a line, with the columns of the parquet; a line may also be a task's own JSON."""
    try:
        data = file.read_bytes()
    except OSError as error:
        yield LoadError(f"{file}: not readable: {error}")
        return
    for number, line in numbered_lines(data):
        where = f"{file} line {number}"
        try:
            row = read_json(line)
        except ValueError as error:
            yield LoadError(f"{where}: not readable as JSON: {error}")
            continue
        if isinstance(row, dict):
            yield _row(file, where, row if "task_config" in row else {"task_config": row})
        else:
            yield LoadError(f"{where}: must be a JSON object")


def _parquet(file: Path) -> Iterator[TaskFields | LoadError]:
    """Slime-OSWorld's columns: task_config (JSON text) and optionally task_id, domain, instruction."""
    import pyarrow.parquet

    try:
        rows = read_rows(file, SLIME_COLUMNS, max_bytes=MAX_TABLE_BYTES)
    except BadTable as error:
        yield LoadError(f"{file}: not readable as parquet: {error}")
        return
    if rows and "task_config" not in rows[0]:
        names = pyarrow.parquet.read_schema(file).names
        yield LoadError(f"{file}: column task_config is missing; columns: {', '.join(names)}")
        return
    yield from (_row(file, f"{file} row {number}", row) for number, row in enumerate(rows))


def _row(file: Path, where: str, row: dict[str, Any]) -> TaskFields | LoadError:
    try:
        values = _row_config(row, where)
    except LoadError as error:
        return error
    if split := SPLIT_NAMES.get(file.stem):
        values.setdefault("split", split)
    return TaskFields(where, values, str(row.get("domain") or ""))


def _row_config(row: dict[str, Any], where: str) -> dict[str, Any]:
    """The task JSON of a row, with the row's own id and instruction where the JSON has none."""
    config = row["task_config"]
    try:
        values = read_json(config.encode()) if isinstance(config, str) and config else config or {}
    except ValueError as error:
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
