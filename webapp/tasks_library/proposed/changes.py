"""What differs between two states of a desktop (workers/tasks/desktop_state.py)."""

import posixpath
from dataclasses import dataclass
from typing import Any

State = dict[str, Any]
Entry = dict[str, Any]


@dataclass(frozen=True, slots=True)
class FileChange:
    """One file that is new or holds something else."""

    path: str
    before: Entry | None
    after: Entry

    @property
    def name(self) -> str:
        return posixpath.basename(self.path)

    @property
    def folder(self) -> str:
        return posixpath.dirname(self.path)


@dataclass(frozen=True, slots=True)
class Changes:
    files: list[FileChange]
    gone: list[str]
    folders: list[str]
    """New ones."""
    opened: list[Entry]
    """Windows, also those whose title is another one now."""
    closed: list[Entry]


def between(before: State, after: State) -> Changes:
    """What `after` has that `before` had not, and the other way round."""
    old, new = ({entry["path"]: entry for entry in state["files"]} for state in (before, after))
    files = [
        FileChange(path, old.get(path), entry)
        for path, entry in new.items()
        if _differs(old.get(path), entry)
    ]
    titles = [{_title(window) for window in state["windows"]} for state in (before, after)]
    return Changes(
        files,
        [path for path in old if path not in new],
        [path for path in after["folders"] if path not in before["folders"]],
        [window for window in after["windows"] if _title(window) not in titles[0]],
        [window for window in before["windows"] if _title(window) not in titles[1]],
    )


def is_hidden(path: str, home: str) -> bool:
    """Whether it is a program's own, and none that people see."""
    return any(part.startswith(".") for part in path.removeprefix(home).split("/"))


def _title(window: Entry) -> str:
    return str(window["title"]).lstrip("*")  # editors mark a text that is not saved yet


def _differs(before: Entry | None, after: Entry) -> bool:
    if before is None:
        return True
    for key in ("text", "base64"):
        if key in before and key in after:
            return bool(before[key] != after[key])
    return (before["bytes"], before["stamp"]) != (after["bytes"], after["stamp"])
