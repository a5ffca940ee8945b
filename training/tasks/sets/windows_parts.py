"""What the Windows tasks are made of: keyboard actions, checkers over getters, and their set-up."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from training.contracts.types import Action, ActionKind
from training.tasks.sets.task_family import chord, step, typing

WORK = "C:\\Work"
WRITE_LIMIT_S = 2.0
"""Programs close their files a moment after the last key."""
Evaluator = dict[str, Any]
Config = tuple[dict[str, Any], ...]


def run(command: str, wait_s: float = 3.0) -> tuple[Action, ...]:
    """Start a command from the Run dialog."""
    return chord("super", "r"), wait(1.0), typing(command + "\n"), wait(wait_s)


def wait(seconds: float) -> Action:
    return Action(kind=ActionKind.WAIT, seconds=seconds)


def part(func: str, getter: str, rules: dict[str, Any], **parameters: str) -> Evaluator:
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


def running(names: tuple[str, ...], related: Iterable[str] = ()) -> Evaluator:
    rules = {"names": list(names), "unwanted": ["cmd"], "related": [n for n in related if n not in names]}
    if "cmd" in names:
        rules["unwanted"] = []
    return part("process_running", "guest_processes", rules)


def shown(title: str, related: Iterable[str] = ()) -> Evaluator:
    rules = {"title": title, "related": [other for other in related if other != title]}
    return part("window_open", "guest_windows", rules)


def there(path: str, **rules: Any) -> Evaluator:
    """A path below WORK, written with /."""
    return part("file_exists", "guest_files", {"path": path, **rules}, folder=WORK)


def holding(path: str, text: str, **rules: Any) -> Evaluator:
    return part("file_contains", "vm_file", {"text": text, **rules}, path=inside(path))


def valued(key: str, name: str, value: str, **rules: Any) -> Evaluator:
    return part("setting_value", "guest_setting", {"value": value, **rules}, key=key, name=name)


def inside(path: str) -> str:
    return f"{WORK}\\" + path.replace("/", "\\")


def work(**files: str) -> Config:
    """Setup: the work folder with these files; `plan="x"` is plan.txt."""
    folder = step("execute", command=["cmd.exe", "/d", "/c", "if", "not", "exist", WORK, "mkdir", WORK])
    texts = (step("write_file", path=inside(f"{name}.txt"), content=text) for name, text in files.items())
    return (folder, *texts)


def note(path: str, text: str) -> tuple[Action, ...]:
    """Write a text into a new file with Notepad, and leave Notepad open."""
    return (
        *run("notepad"),
        typing(text),
        chord("ctrl", "s"),
        wait(1.5),
        typing(inside(path) + "\n"),
        wait(1.5),
    )
