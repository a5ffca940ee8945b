"""What of OSWorld's task schema xlang-ai's DesktopEnv 1.0.2 can run, and on which machines.

The names are those of the package (a test compares); the reasons why something is missing are ours.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from training.contracts.types import Task
from training.tasks.supported_by.deskhand import INFEASIBLE, as_list
from training.tasks.supported_by.desktop_programs import Programs

FUNCTIONS = Path(__file__).with_name("osworld_functions.json")

NOT_WRITTEN = {
    ("setup", "act"): "DesktopEnv itself raises NotImplementedError",
    ("setup", "replay"): "DesktopEnv itself raises NotImplementedError",
    ("setup", "tidy_desktop"): "DesktopEnv itself raises NotImplementedError",
    ("getters", "replay"): "DesktopEnv itself has only a part of it",
}
HOST_CODE = {
    ("metrics", "check_python_file_by_test_suite"): "it runs the agent's Python file on the env worker",
    ("metrics", "check_gnome_favorite_apps"): "it evaluates the desktop's answer as Python on the env worker",
}
"""What a trained agent could use to leave its desktop; refused unless `desktops.osworld.allow_host_code`."""

CHROME = "our desktops have no Google Chrome"
VLC = "our desktops have no VLC"
NETWORK = "our desktops have no network"
DESKTOP_GAPS: dict[tuple[str, str], str] = {
    ("setup", "chrome_close_tabs"): CHROME,
    ("setup", "chrome_open_tabs"): CHROME,
    ("setup", "update_browse_history"): CHROME,
    ("setup", "googledrive"): "it needs a Google account",
    ("setup", "login"): "it needs a Google account and Google Chrome",
    ("setup", "proxy"): NETWORK,
    ("getters", "googledrive_file"): "it needs a Google account",
    ("getters", "gimp_config_file"): "our desktops have no GIMP",
    ("getters", "vscode_config"): "our desktops have no VS Code",
    ("getters", "vlc_config"): VLC,
    ("getters", "vlc_playing_info"): VLC,
    ("getters", "default_video_player"): "our desktops have no xdg-mime",
    ("getters", "vm_terminal_output"): "our desktops have no GNOME terminal to read",
}
MODULE_GAPS = {("getters", "chrome"): CHROME}
WITHOUT_CHROME = frozenset({"shortcuts_on_desktop"})
"""Getters of the module chrome that need no Chrome."""


@cache
def functions() -> dict[str, dict[str, str]]:
    """{setup | getters | metrics: {name: module}} of DesktopEnv 1.0.2."""
    return json.loads(FUNCTIONS.read_text())


def library_gap(kind: str, name: str) -> str:
    """Why DesktopEnv cannot do it on any machine; "" when it can."""
    if name not in functions()[kind]:
        return "DesktopEnv 1.0.2 has no such function"
    return NOT_WRITTEN.get((kind, name), "")


def desktop_gap(kind: str, name: str) -> str:
    """Why it cannot work on our own desktops; "" when it can."""
    if found := DESKTOP_GAPS.get((kind, name)):
        return found
    module = functions()[kind].get(name, "")
    return "" if name in WITHOUT_CHROME else MODULE_GAPS.get((kind, module), "")


def osworld_reason(task: Task, *, programs: Programs | None, allow_host_code: bool = False) -> str:
    """Why DesktopEnv cannot run `task`, in words; "" when it can.

    `programs` are those of our desktops; None stands for OSWorld's own machines.
    """
    return "; ".join(dict.fromkeys(_problems(task, programs, allow_host_code)))


def _problems(task: Task, programs: Programs | None, allow_host_code: bool) -> Iterator[str]:
    evaluator = task.evaluator
    if not as_list(evaluator.get("func")):
        yield "evaluator.func is missing"
    for kind, name, where in _named(task):
        gap = library_gap(kind, name)
        if not gap and not allow_host_code and (kind, name) in HOST_CODE:
            gap = HOST_CODE[kind, name]
        if not gap and programs:
            gap = desktop_gap(kind, name)
        if gap:
            yield f"{where}: {name}: {gap}"
    if programs:
        for index, step in enumerate(task.config):
            if gap := _program_gap(step, programs):
                yield f"config[{index}]: {gap}"


def _named(task: Task) -> Iterator[tuple[str, str, str]]:
    """(kind, name, where) of every function that the task names."""
    evaluator = task.evaluator
    for index, step in enumerate(task.config):
        yield "setup", str(step.get("type")), f"config[{index}]"
    for index, step in enumerate(as_list(evaluator.get("postconfig"))):
        verb = step.get("type") if isinstance(step, dict) else step
        yield "setup", str(verb), f"evaluator.postconfig[{index}]"
    for name in as_list(evaluator.get("func")):
        yield "metrics", str(name), "evaluator.func"
    if evaluator.get("func") == INFEASIBLE:
        return
    for key in ("result", "expected"):
        for getter in as_list(evaluator.get(key)):
            if isinstance(getter, dict) and getter:
                yield "getters", str(getter.get("type")), f"evaluator.{key}"


def _program_gap(step: dict[str, Any], programs: Programs) -> str:
    parameters = step.get("parameters")
    if not isinstance(parameters, dict):
        return ""
    if step.get("type") == "open":
        return programs.gap_of_file(str(parameters.get("path", "")))
    if step.get("type") not in ("launch", "execute", "command"):
        return ""
    command = parameters.get("command")
    words = command.split() if isinstance(command, str) else command
    return programs.gap_of_command(str(words[0])) if isinstance(words, (list, tuple)) and words else ""
