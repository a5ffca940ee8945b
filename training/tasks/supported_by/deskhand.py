"""What of OSWorld's task schema Deskhand can run, and why the rest is refused.

One row per setup verb, getter and metric; `workers.tasks` implements exactly the supported ones
(a test compares). A task with anything else is marked unsupported with the reason, never skipped.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from training.contracts.task import INFEASIBLE, as_list, column
from training.contracts.types import Task
from training.tasks.supported_by.desktop_programs import DESK, Programs
from training.tasks.supported_by.json_rules import json_rule_problems


@dataclass(frozen=True, slots=True)
class Row:
    """One supported name and its parameters."""

    needs: frozenset[str] = frozenset()
    """All of these are required."""
    takes: frozenset[str] = frozenset()
    """These may be there too."""
    rules: frozenset[str] = frozenset()
    """What a metric's rule must hold; OSWorld has metrics of the same name with other rules."""


def _row(needs: str = "", takes: str = "", rules: str = "") -> Row:
    return Row(frozenset(needs.split()), frozenset(takes.split()), frozenset(rules.split()))


SETUP_VERBS: dict[str, Row] = {
    "launch": _row("command", "shell"),
    "execute": _row("command", "shell stdout stderr until"),
    "command": _row("command", "shell stdout stderr until"),
    "sleep": _row("seconds"),
    "open": _row("path"),
    "activate_window": _row("window_name", "strict by_class"),
    "close_window": _row("window_name", "strict by_class"),
    "upload_file": _row("files"),
    "insert_disc": _row("files", "label"),
    "write_file": _row("path content"),
    "panel": _row("spec result"),
    "place_window": _row("window_name x y width height"),
    "wait_color": _row("x y color"),
    "press_keys": _row("chords"),
}
"""write_file, panel, place_window, wait_color and press_keys are Deskhand's own."""

GETTERS: dict[str, Row] = {
    "vm_file": _row("path", "dest"),
    "vm_command_line": _row("command", "shell"),
    "rule": _row("rules"),
    "inline": _row("content"),
    "guest_processes": _row(),
    "guest_windows": _row(),
    "guest_files": _row("folder"),
    "guest_setting": _row("key name"),
    "office_document": _row("path"),
}

METRICS: dict[str, Row] = {
    "exact_match": _row(),
    "compare_text_file": _row(takes="ignore_blanks ignore_case ignore_trailing_newlines"),
    "check_include_exclude": _row(),
    "check_json": _row(),
    "process_running": _row(),
    "window_open": _row(),
    "file_exists": _row(),
    "file_contains": _row(rules="text"),
    "setting_value": _row(),
}
"""Metric -> the options it takes."""

EVALUATOR_KEYS = frozenset({"func", "result", "expected", "options", "conj", "postconfig", "wait_s"})

KNOWN_GAPS = {
    "download": "desktops have no network",
    "googledrive": "desktops have no network",
    "login": "desktops have no network",
    "chrome_open_tabs": "no browser is installed in the desktops",
    "chrome_close_tabs": "no browser is installed in the desktops",
    "update_browse_history": "no browser is installed in the desktops",
    "change_wallpaper": "the desktops draw a plain background",
    "cloud_file": "desktops have no network",
    "googledrive_file": "desktops have no network",
}


def unsupported_reason(task: Task, programs: Programs = DESK) -> str:
    """Why `task` cannot run on desktops with these programs, in words; "" when it can."""
    return "; ".join(task_problems(task, programs))


def task_problems(task: Task, programs: Programs = DESK) -> list[str]:
    """Each begins with its place: "config[2]: ...", "evaluator[0].expected ..."."""
    found = (
        *setup_problems(task.config, "config", programs),
        *evaluator_problems(task.evaluator, programs),
        *milestone_problems(task),
    )
    return list(dict.fromkeys(found))


def milestone_problems(task: Task) -> Iterator[str]:
    """What is wrong with its milestones: nothing is run for them, since the agent works meanwhile."""
    names = [milestone.name for milestone in task.milestones]
    for index, milestone in enumerate(task.milestones):
        where, evaluator = f"milestones[{index}]", milestone.evaluator
        if names.index(milestone.name) != index:
            yield f"{where}.name: {milestone.name} is the name of another one"
        for key in sorted({"postconfig", "wait_s"} & evaluator.keys()):
            yield f"{where}.evaluator.{key}: a milestone is looked at and nothing is done for it"
        getters = [*as_list(evaluator.get("result")), *as_list(evaluator.get("expected"))]
        if any(isinstance(getter, dict) and getter.get("type") == "vm_command_line" for getter in getters):
            yield f"{where}.evaluator: vm_command_line runs a program beside the agent's; read a file instead"
        if as_list(evaluator.get("func")) == [INFEASIBLE]:
            yield f"{where}.evaluator.func: infeasible is said at the end"
        for problem in evaluator_problems(evaluator):
            yield f"{where}.{problem}"


def setup_problems(steps: Any, where: str, programs: Programs = DESK) -> Iterator[str]:
    """What is wrong with a list of setup steps."""
    if not isinstance(steps, (list, tuple)):
        yield f"{where} must be a list of steps"
        return
    for index, step in enumerate(steps):
        if not isinstance(step, dict) or not isinstance(step.get("parameters", {}), dict):
            yield f"{where}[{index}] must be an object with type and parameters"
            continue
        verb, parameters = str(step.get("type")), step.get("parameters", {})
        yield from _row_problems(SETUP_VERBS, verb, parameters, "setup verb", f"{where}[{index}]")
        if verb in ("upload_file", "insert_disc") and isinstance(parameters.get("files"), list):
            yield from _upload_problems(parameters["files"], f"{where}[{index}]")
        if verb in ("launch", "execute", "command"):
            yield from _program_problems(parameters.get("command"), f"{where}[{index}]", programs)
        if verb in ("execute", "command") and parameters.get("until"):
            yield from _until_problems(parameters["until"], f"{where}[{index}]")


def _upload_problems(files: list[Any], where: str) -> Iterator[str]:
    for item in files:
        if not isinstance(item, dict) or "path" not in item:
            yield f"{where}: every upload needs a path"
        elif "content" not in item and "content_base64" not in item:
            yield f"{where}: needs inline content; local_path names a file that was not imported"


def _program_problems(command: Any, where: str, programs: Programs) -> Iterator[str]:
    words = command.split() if isinstance(command, str) else command
    if not isinstance(words, (list, tuple)) or not words:
        yield f"{where}: command must be a string or a list, and not empty"
        return
    if gap := programs.gap_of_command(str(words[0])):
        yield f"{where}: {gap}"


def _until_problems(until: Any, where: str) -> Iterator[str]:
    known = {"returncode", "stdout", "stderr"}
    if not isinstance(until, dict) or not until.keys() <= known:
        yield f"{where}: until may hold returncode, stdout and stderr"


def evaluator_problems(evaluator: dict[str, Any], programs: Programs = DESK) -> Iterator[str]:
    """What is wrong with an evaluator."""
    functions = as_list(evaluator.get("func"))
    if not any(functions):
        yield "evaluator.func is missing"
        return
    if functions == [INFEASIBLE]:
        return
    for key in sorted(evaluator.keys() - EVALUATOR_KEYS):
        yield f"evaluator.{key} is not supported"
    if evaluator.get("conj", "and") not in ("and", "or", "mean"):
        yield "evaluator.conj must be and, or or mean"
    yield from setup_problems(evaluator.get("postconfig", []), "evaluator.postconfig", programs)
    parts: dict[str, list[Any]] = {}
    for key in ("result", "expected", "options"):
        parts[key] = column(evaluator, key, len(functions))
        if len(parts[key]) != len(functions):
            yield f"evaluator.{key} must have one entry per func"
            return
    for index, function in enumerate(functions):
        where = f"evaluator[{index}]"
        options = parts["options"][index] or {}
        if isinstance(options, dict):
            yield from _row_problems(METRICS, str(function), options, "metric", where)
        else:
            yield f"{where}.options must be an object"
        for key in ("result", "expected"):
            yield from _getter_problems(parts[key][index], f"{where}.{key}")
        yield from _rule_problems(str(function), parts["expected"][index], f"{where}.expected")


def _getter_problems(getter: Any, where: str) -> Iterator[str]:
    if not isinstance(getter, dict):
        yield f"{where} must be an object with a type"
        return
    parameters = {key: value for key, value in getter.items() if key != "type"}
    yield from _row_problems(GETTERS, str(getter.get("type")), parameters, "getter", where)


def _rule_problems(metric: str, expected: Any, where: str) -> Iterator[str]:
    row = METRICS.get(metric)
    if row is None or not isinstance(expected, dict) or expected.get("type") != "rule":
        return
    rules = expected.get("rules")
    if metric == "check_json":
        yield from (f"{where}.rules.{problem}" for problem in json_rule_problems(rules))
    for missing in sorted(row.rules - (rules.keys() if isinstance(rules, dict) else set())):
        yield f"{where}.rules: metric {metric} needs {missing}"


def _row_problems(
    table: dict[str, Row], name: str, parameters: dict[str, Any], noun: str, where: str
) -> Iterator[str]:
    row = table.get(name)
    if row is None:
        gap = KNOWN_GAPS.get(name)
        yield f"{where}: {noun} {name} is not supported" + (f" ({gap})" if gap else "")
        return
    for missing in sorted(row.needs - parameters.keys()):
        yield f"{where}: {noun} {name} needs {missing}"
    for extra in sorted(parameters.keys() - row.needs - row.takes):
        yield f"{where}: {noun} {name} does not support {extra}"
