"""Builders of what a Windows task holds: the oracle's keyboard actions, set-up steps and evaluators."""

from collections.abc import Iterable
from typing import Any

from training.content.task_sets.steps_and_evaluators import press_keys, setup_step, type_text, wait
from training.contracts.types import Action

WORK = "C:\\Work"
WRITE_LIMIT_S = 2.0
"""Programs close their files a moment after the last key."""
Evaluator = dict[str, Any]
Config = tuple[dict[str, Any], ...]


def run(command: str, wait_s: float = 3.0) -> tuple[Action, ...]:
    """Start a command from the Run dialog."""
    return press_keys("super", "r"), wait(1.0), type_text(command + "\n"), wait(wait_s)


def rule_evaluator(func: str, getter: str, rules: dict[str, Any], **parameters: str) -> Evaluator:
    """One checker over one getter."""
    return {
        "func": func,
        "result": {"type": getter, **parameters},
        "expected": {"type": "rule", "rules": rules},
        "wait_s": WRITE_LIMIT_S,
    }


def mean_of(*parts: Evaluator) -> Evaluator:
    """Several checkers; each counts the same, and one that is 0 does not undo the others."""
    columns: Evaluator = {key: [item[key] for item in parts] for key in ("func", "result", "expected")}
    return columns | {"conj": "mean", "wait_s": WRITE_LIMIT_S}


def process_running(names: tuple[str, ...], related: Iterable[str] = ()) -> Evaluator:
    rules = {"names": list(names), "unwanted": ["cmd"], "related": [n for n in related if n not in names]}
    if "cmd" in names:
        rules["unwanted"] = []
    return rule_evaluator("process_running", "guest_processes", rules)


def window_open(title: str, related: Iterable[str] = ()) -> Evaluator:
    rules = {"title": title, "related": [other for other in related if other != title]}
    return rule_evaluator("window_open", "guest_windows", rules)


def file_exists(path: str, **rules: Any) -> Evaluator:
    """A path below WORK, written with /."""
    return rule_evaluator("file_exists", "guest_files", {"path": path, **rules}, folder=WORK)


def file_contains(path: str, text: str, **rules: Any) -> Evaluator:
    return rule_evaluator("file_contains", "vm_file", {"text": text, **rules}, path=in_work(path))


def setting_value(key: str, name: str, value: str, **rules: Any) -> Evaluator:
    return rule_evaluator("setting_value", "guest_setting", {"value": value, **rules}, key=key, name=name)


def in_work(path: str) -> str:
    return f"{WORK}\\" + path.replace("/", "\\")


def work_folder(**files: str) -> Config:
    """Setup: the work folder with these files; `plan="x"` is plan.txt."""
    folder = setup_step("execute", command=["cmd.exe", "/d", "/c", "if", "not", "exist", WORK, "mkdir", WORK])
    paths = {in_work(f"{name}.txt"): text for name, text in files.items()}
    texts = (setup_step("write_file", path=path, content=text) for path, text in paths.items())
    return (folder, *texts)


def write_note(path: str, text: str) -> tuple[Action, ...]:
    """Write a text into a new file with Notepad, and leave Notepad open."""
    return (
        *run("notepad"),
        type_text(text),
        press_keys("ctrl", "s"),
        wait(1.5),
        type_text(in_work(path) + "\n"),
        wait(1.5),
    )
