"""Checks of an evaluator that hold after a person did a task and did not before, to choose from."""

import posixpath
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from webapp.tasks_library.proposed.changes import Changes, Entry, FileChange, State, between, is_hidden

MAX_LINES = 12
MAX_VALUES = 24
"""Of one file or document."""
BROWSERS = ("chromium", "chrome", "firefox")
SETTINGS = (".conf", ".cfg", ".ini", "rc", ".desktop")


@dataclass(slots=True)
class Check:
    """One func of an evaluator."""

    kind: str
    """file, document, folder, setting, page, window or program."""
    about: str
    """What changed, e.g. a path."""
    words: str
    func: str
    result: dict[str, Any]
    expected: dict[str, Any]
    options: dict[str, Any]
    is_chosen: bool = False


def checks(start: State, end: State) -> list[Check]:
    """All that follow from what changed; those that say most are chosen."""
    changes, home = between(start, end), start["home"]
    seen = [change for change in changes.files if not is_hidden(change.path, home)]
    gone = [path for path in changes.gone if not is_hidden(path, home)]
    found = [
        *(check for change in seen for check in _file(change, start, gone)),
        *(_gone(path) for path in gone),
        *(_folder(path, start) for path in changes.folders if not is_hidden(path, home)),
        *(check for change in changes.files for check in _settings(change, home)),
        *_windows(changes, start, end),
    ]
    _choose(found)
    return found


def _choose(found: list[Check]) -> None:
    """The kind that says most; a window alone only where nothing else has changed."""
    for kinds in (("file", "document", "folder"), ("setting",), ("page", "window", "program")):
        mine = [check for check in found if check.kind in kinds]
        if any(check.is_chosen for check in mine):
            break
    for check in found:
        check.is_chosen = check.is_chosen and check in mine


def _rule(**rules: Any) -> dict[str, Any]:
    return {"type": "rule", "rules": rules}


def _file(change: FileChange, start: State, gone: list[str]) -> Iterator[Check]:
    path, name = change.path, change.name
    moved = [posixpath.basename(old) for old in gone if posixpath.dirname(old) == change.folder]
    document = change.after.get("document")
    if document:
        yield from _document(change, document)
    elif "text" in change.after:
        yield from _text(change, change.after["text"])
    if change.before is None:
        rules: dict[str, Any] = {"path": name, "before": _names_in(change.folder, start)}
        words = f"{name} is there" + (f", and {', '.join(moved)} no more" if moved else "")
        if moved:
            rules["gone"] = moved
        result = {"type": "guest_files", "folder": change.folder}
        is_chosen = bool(moved) or ("text" not in change.after and not document)
        yield Check("file", path, words, "file_exists", result, _rule(**rules), {}, is_chosen)


def _text(change: FileChange, text: str) -> Iterator[Check]:
    result = {"type": "vm_file", "path": change.path, "dest": change.name}
    yield Check(
        *("file", change.path, f"{change.name} holds exactly: {_short(text)}", "compare_text_file", result),
        expected={"type": "inline", "content": text},
        options={"ignore_trailing_newlines": True},
        is_chosen=True,
    )
    before = (change.before or {}).get("text", "").splitlines()
    after = text.splitlines()
    for line in [line for line in after if line.strip() and line not in before][:MAX_LINES]:
        words = f"{change.name} says: {_short(line)}"
        rule = _rule(include=[line], exclude=[])
        yield Check("file", change.path, words, "check_include_exclude", result, rule, {})
    for line in [line for line in before if line.strip() and line not in text][:MAX_LINES]:
        words = f"{change.name} says no more: {_short(line)}"
        rule = _rule(include=[], exclude=[line])
        yield Check("file", change.path, words, "check_include_exclude", result, rule, {})


def _document(change: FileChange, document: Any) -> Iterator[Check]:
    old = dict(_leaves((change.before or {}).get("document") or {}))
    result = {"type": "office_document", "path": change.path}
    changed = [
        (key, value) for key, value in _leaves(document) if old.get(key) != value and value is not None
    ]
    for key, value in changed[:MAX_VALUES]:
        where = " ".join(str(part + 1 if isinstance(part, int) else part) for part in key)
        rule = _rule(expect=[{"key": list(key), "method": "eq", "ref": value}])
        is_content = key[-1] in ("value", "text") or key[-2:-1] == ("texts",)
        words = f"{change.name}, {where}: {_short(str(value))}"
        yield Check("document", change.path, words, "check_json", result, rule, {}, is_content)


def _leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, inner in items:
            yield from _leaves(inner, (*path, key))
    else:
        yield path, value


def _gone(path: str) -> Check:
    command = ["bash", "-c", f"test -e {shlex.quote(path)} && echo there || echo gone"]
    return Check(
        *("file", path, f"{posixpath.basename(path)} is gone", "exact_match"),
        {"type": "vm_command_line", "command": command},
        _rule(expected="gone\n"),
        {},
        is_chosen=True,
    )


def _folder(path: str, start: State) -> Check:
    folder, name = posixpath.split(path)
    rule = _rule(path=name, folder=True, before=_names_in(folder, start))
    result = {"type": "guest_files", "folder": folder}
    return Check("folder", path, f"Folder {name} is there", "file_exists", result, rule, {}, is_chosen=True)


def _names_in(folder: str, state: State) -> list[str]:
    """What was there at the start, which counts for nothing."""
    paths = [*(entry["path"] for entry in state["files"]), *state["folders"]]
    below = [path[len(folder) + 1 :] for path in paths if path.startswith(f"{folder}/")]
    return sorted(name for name in below if "/" not in name and not name.startswith("."))


def _settings(change: FileChange, home: str) -> Iterator[Check]:
    """Lines NAME=VALUE of files in which programs keep them."""
    if not change.path.endswith(SETTINGS) or "text" not in change.after:
        return
    old = dict(_pairs((change.before or {}).get("text", "")))
    new = [(name, value) for name, value in _pairs(change.after["text"]) if old.get(name) != value]
    for name, value in new[:MAX_VALUES]:
        rules: dict[str, Any] = {"value": value, "had_key": change.before is not None}
        if name in old:
            rules["before"] = old[name]
        result = {"type": "guest_setting", "key": change.path, "name": name}
        words = f"{name} is {_short(value)} in {change.path.removeprefix(home + '/')}"
        yield Check(
            *("setting", change.path, words, "setting_value", result, _rule(**rules), {}),
            is_chosen=name in old,
        )


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    for line in text.splitlines():
        name, mark, value = line.partition("=")
        if mark and name.strip() and not name.startswith(("#", ";")):
            yield name.strip(), value.strip()


def _windows(changes: Changes, start: State, end: State) -> Iterator[Check]:
    for window in changes.opened:
        title = str(window["title"]).lstrip("*")
        is_page = window.get("program") in BROWSERS
        shown = title.rpartition(" - ")[0] if is_page and " - " in title else title
        words = (
            f"The browser shows the page {_short(shown)}"
            if is_page
            else f"A window {_short(title)} is in front"
        )
        kind, is_chosen = "page" if is_page else "window", bool(window["active"])
        result = {"type": "guest_windows"}
        yield Check(kind, title, words, "window_open", result, _rule(title=shown), {}, is_chosen)
    for window in changes.closed:
        title = str(window["title"]).lstrip("*")
        yield Check(
            *("window", title, f"No window {_short(title)} is open", "exact_match"),
            {"type": "vm_command_line", "command": ["bash", "-c", _count_windows(title)]},
            _rule(expected="0\n"),
            {},
            is_chosen=not changes.opened,
        )
    ran = {window.get("program") for window in start["windows"]}
    for name in sorted({_program(window) for window in end["windows"]} - ran - {""}):
        result = {"type": "guest_processes"}
        yield Check("program", name, f"{name} runs", "process_running", result, _rule(names=[name]), {})


def _program(window: Entry) -> str:
    return str(window.get("program") or "")


def _count_windows(title: str) -> str:
    return f"wmctrl -l | grep -cF -- {shlex.quote(title)} || true"


def _short(text: str, limit: int = 60) -> str:
    line = " ⏎ ".join(text.strip().splitlines())
    return f"“{line if len(line) <= limit else line[: limit - 1] + '…'}”"
