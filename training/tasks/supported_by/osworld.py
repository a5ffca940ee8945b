"""What of OSWorld's task schema xlang-ai's DesktopEnv 1.0.2 can run, and on which machines.

The names are those of the package (a test compares); the reasons why something is missing are ours.
"""

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from training.contracts.task import INFEASIBLE, as_list, column
from training.contracts.types import Task
from training.tasks.supported_by.desktop_programs import Programs
from training.tasks.supported_by.json_rules import json_rule_problems
from training.tasks.supported_by.shell_commands import programs_of

FUNCTIONS = Path(__file__).with_name("osworld_functions.json")
TASK_GAPS = Path(__file__).with_name("osworld_task_gaps.json")

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

NO_NETWORK = "our desktops have no network"
INTERNET = "it needs the internet"
LIVE_SITES = f"it opens live web sites, and {NO_NETWORK}"
ACCOUNT = "it needs a Google account"
NO_DESKTOP: dict[tuple[str, str], str] = {
    ("setup", "googledrive"): ACCOUNT,
    ("setup", "login"): ACCOUNT,
    ("setup", "proxy"): NO_NETWORK,
    ("getters", "googledrive_file"): ACCOUNT,
    ("getters", "default_video_player"): "our desktops have one video player at most, so nothing to change",
}
"""What works on none of our desktops."""
NEEDS: dict[tuple[str, str], str] = {
    ("setup", "chrome_close_tabs"): "google-chrome",
    ("setup", "chrome_open_tabs"): "google-chrome",
    ("setup", "update_browse_history"): "google-chrome",
    ("getters", "gimp_config_file"): "gimp",
    ("getters", "vscode_config"): "code",
    ("getters", "vlc_config"): "vlc",
    ("getters", "vlc_playing_info"): "vlc",
    ("getters", "vm_terminal_output"): "gnome-terminal",
}
"""Command that a function of theirs needs in the desktop; those of a module in MODULE_NEEDS."""
MODULE_NEEDS = {("getters", "chrome"): "google-chrome"}
NAMES = {
    "google-chrome": "Google Chrome", "gimp": "GIMP", "code": "VS Code", "vlc": "VLC",
    "gnome-terminal": "GNOME terminal to read",
}  # fmt: skip
WITHOUT_CHROME = frozenset({"shortcuts_on_desktop"})
"""Getters of the module chrome that need no Chrome."""
COMMAND_STEPS = frozenset({"launch", "execute", "command", "execute_with_verification"})
COMMAND_GETTERS = frozenset({"vm_command_line", "vm_command_error"})


@cache
def functions() -> dict[str, dict[str, str]]:
    """{setup | getters | metrics: {name: module}} of DesktopEnv 1.0.2."""
    return json.loads(FUNCTIONS.read_text())


def library_gap(kind: str, name: str) -> str:
    """Why DesktopEnv cannot do it on any machine; "" when it can."""
    if name not in functions()[kind]:
        return "DesktopEnv 1.0.2 has no such function"
    return NOT_WRITTEN.get((kind, name), "")


@cache
def gaps_of_tasks() -> dict[str, str]:
    """DOMAIN.ID of OSWorld -> what the task itself wants that none of our desktops has."""
    return json.loads(TASK_GAPS.read_text())


def desktop_gap(kind: str, name: str, programs: Programs) -> str:
    """Why it cannot work on our own desktops with these programs; "" when it can."""
    if found := NO_DESKTOP.get((kind, name)):
        return found
    module = functions()[kind].get(name, "")
    of_module = "" if name in WITHOUT_CHROME else MODULE_NEEDS.get((kind, module), "")
    needed = NEEDS.get((kind, name), of_module)
    return f"our desktops have no {NAMES[needed]}" if needed and not programs.has(needed) else ""


def osworld_reason(task: Task, *, programs: Programs | None, allow_host_code: bool = False) -> str:
    """Why DesktopEnv cannot run `task`, in words; "" when it can.

    `programs` are those of our desktops; None stands for OSWorld's own machines.
    """
    return "; ".join(dict.fromkeys(_problems(task, programs, allow_host_code)))


def _problems(task: Task, programs: Programs | None, allow_host_code: bool) -> Iterator[str]:
    evaluator = task.evaluator
    if not any(as_list(evaluator.get("func"))):
        yield "evaluator.func is missing"
    for kind, name, where in _named(task):
        gap = library_gap(kind, name)
        if not gap and not allow_host_code and (kind, name) in HOST_CODE:
            gap = HOST_CODE[kind, name]
        if not gap and programs:
            gap = desktop_gap(kind, name, programs)
        if gap:
            yield f"{where}: {name}: {gap}"
    yield from _gaps_of_rules(evaluator)
    if programs:
        yield from _gaps_of_programs(task, programs)
        yield from _gaps_of_network(task)


def _gaps_of_rules(evaluator: dict[str, Any]) -> Iterator[str]:
    """Rules that DesktopEnv answers with 0 whatever the agent did."""
    metrics = as_list(evaluator.get("func"))
    for metric, expected in zip(metrics, column(evaluator, "expected", len(metrics)), strict=False):
        if metric == "check_json" and isinstance(expected, dict) and expected.get("type") == "rule":
            yield from (
                f"evaluator.expected.rules.{problem}" for problem in json_rule_problems(expected.get("rules"))
            )


def _gaps_of_programs(task: Task, programs: Programs) -> Iterator[str]:
    """Programs that steps and getters start, and that are not there."""
    for step, where in _steps(task):
        parameters = step.get("parameters")
        if not isinstance(parameters, dict):
            continue
        if step.get("type") == "open" and (gap := programs.gap_of_file(str(parameters.get("path", "")))):
            yield f"{where}: {gap}"
        if step.get("type") in COMMAND_STEPS:
            yield from _gaps_of_command(parameters.get("command"), where, programs)
    for getter, where in _getters(task):
        if getter.get("type") in COMMAND_GETTERS:
            yield from _gaps_of_command(getter.get("command"), where, programs)


def _gaps_of_command(command: object, where: str, programs: Programs) -> Iterator[str]:
    for program in programs_of(command):
        if gap := programs.gap_of_command(program):
            yield f"{where}: {gap}"


def _gaps_of_network(task: Task) -> Iterator[str]:
    """Our desktops reach no network: live web sites, and what else the task wants from the internet."""
    for step, where in _steps(task):
        parameters = step.get("parameters")
        urls = parameters.get("urls_to_open") if isinstance(parameters, dict) else None
        if step.get("type") == "chrome_open_tabs" and any(urlsplit(str(url)).netloc for url in urls or ()):
            yield f"{where}: {LIVE_SITES}"
    if gap := gaps_of_tasks().get(task.task_id.rpartition("/")[2]):
        yield f"instruction: {gap}"


def _named(task: Task) -> Iterator[tuple[str, str, str]]:
    """(kind, name, where) of every function that the task names."""
    for step, where in _steps(task):
        yield "setup", str(step.get("type")), where
    for name in filter(None, as_list(task.evaluator.get("func"))):
        yield "metrics", str(name), "evaluator.func"
    for getter, where in _getters(task):
        yield "getters", str(getter.get("type")), where


def _steps(task: Task) -> Iterator[tuple[dict[str, Any], str]]:
    """(step, where) of set-up and of what goes before the evaluation."""
    parts = (("config", task.config), ("evaluator.postconfig", as_list(task.evaluator.get("postconfig"))))
    for part, steps in parts:
        for index, step in enumerate(steps):
            yield step if isinstance(step, dict) else {"type": step}, f"{part}[{index}]"


def _getters(task: Task) -> Iterator[tuple[dict[str, Any], str]]:
    if task.evaluator.get("func") == INFEASIBLE:
        return
    for key in ("result", "expected"):
        for getter in as_list(task.evaluator.get(key)):
            if isinstance(getter, dict) and getter:
                yield getter, f"evaluator.{key}"
