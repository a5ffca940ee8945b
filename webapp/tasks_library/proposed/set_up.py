"""The steps that bring a clean desktop to where a person began: files, folders, programs, windows."""

import posixpath
from typing import Any

from webapp.tasks_library.proposed.changes import Entry, State, between, is_hidden

Step = dict[str, Any]


def set_up(clean: State, start: State, requested: list[Step]) -> list[Step]:
    """`requested`: steps that the page was requested to do, whose commands are kept."""
    changes, home = between(clean, start), start["home"]
    steps = [
        _step("execute", command=["mkdir", "-p", path])
        for path in changes.folders
        if not is_hidden(path, home) and not _holds_a_file(path, start)
    ]
    files = [_file(change.after) for change in changes.files if not is_hidden(change.path, home)]
    if known := [file for file in files if file]:
        steps.append(_step("upload_file", files=known))
    windows = [window for window in changes.opened if window.get("command")]
    steps += _windows(windows, [step for step in requested if step.get("type") == "launch"])
    return steps


def unknown_files(clean: State, start: State) -> list[str]:
    """Paths of files that the set-up would need and that are too large to be kept in a task."""
    changes = between(clean, start).files
    return [
        change.path
        for change in changes
        if not is_hidden(change.path, start["home"]) and not _file(change.after)
    ]


def _windows(windows: list[Entry], launches: list[Step]) -> list[Step]:
    steps: list[Step] = []
    pids: set[str] = set()
    for window in windows:
        if window["pid"] not in pids:
            pids.add(window["pid"])
            steps.append(_launch(window, launches))
        place = {key: window[key] for key in ("x", "y", "width", "height")}
        steps.append(_step("place_window", window_name=_name(window, windows), **place))
    active = next((window for window in windows if window["active"]), None)
    if active is not None and len(windows) > 1:
        steps.append(_step("activate_window", window_name=_name(active, windows)))
    return steps


def _launch(window: Entry, launches: list[Step]) -> Step:
    """As it was requested, where that is known; else as the program runs."""
    running = posixpath.basename(window["command"][0])
    for step in launches:
        command = step["parameters"]["command"]
        if posixpath.basename(command[0]) in (running, window["program"]):
            launches.remove(step)
            return _step("launch", command=command)
    return _step("launch", command=window["command"])


def _name(window: Entry, windows: list[Entry]) -> str:
    """What names this window alone: its program, which its title may change, or its title."""
    program = str(window["window_class"]).rpartition(".")[2]
    alike = [
        other for other in windows if program.lower() in f"{other['window_class']} {other['title']}".lower()
    ]
    return program if program and len(alike) == 1 else str(window["title"]).lstrip("*")


def _file(entry: Entry) -> dict[str, str]:
    if "text" in entry:
        return {"path": entry["path"], "content": entry["text"]}
    if "base64" in entry:
        return {"path": entry["path"], "content_base64": entry["base64"]}
    return {}


def _holds_a_file(folder: str, state: State) -> bool:
    return any(entry["path"].startswith(f"{folder}/") for entry in state["files"])


def _step(verb: str, **parameters: Any) -> Step:
    return {"type": verb, "parameters": parameters}
