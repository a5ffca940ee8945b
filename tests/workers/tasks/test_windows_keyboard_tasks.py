"""The task set windows-keyboard: 47 tasks whose oracles reach score 1 on a paper model of Windows.

No Windows can be had here. The paper model knows what the Run dialog, cmd and Notepad do with the oracles'
words; it proves that oracle and checker of a task mean the same thing, not that Windows does.
"""

from __future__ import annotations

import shlex
from collections import Counter
from typing import Any

import pytest

from training.actions.parse_completion import parse_completion
from training.actions.write_completion import format_action
from training.content.task_sets.windows_keyboard import WORK, generate
from training.content.task_sets.windows_keyboard.programs_and_dialogs import DIALOGS, PROGRAMS
from training.contracts.types import Action, Task
from training.tasks.supported_by.deskhand import unsupported_reason
from workers.tasks.evaluators.metrics import METRICS

TASKS = generate()
IDS = [task.task_id.removeprefix("windows-keyboard/") for task in TASKS]


def test_the_set_has_the_seeds_structure():
    assert len(TASKS) == 47
    assert Counter(task.level for task in TASKS) == {1: 30, 2: 8, 3: 6, 4: 3}
    functions = [task.evaluator["func"] for task in TASKS]
    used = {name for item in functions for name in (item if isinstance(item, list) else [item])}
    assert used == {"process_running", "window_open", "file_exists", "file_contains", "setting_value"}


def test_every_level_has_train_and_held_out_tasks():
    splits = Counter((task.level, task.split) for task in TASKS)
    assert splits == {
        (1, "train"): 24, (1, "heldout"): 6, (2, "train"): 6, (2, "heldout"): 2,
        (3, "train"): 5, (3, "heldout"): 1, (4, "train"): 2, (4, "heldout"): 1,
    }  # fmt: skip


def test_the_set_follows_from_its_seed_and_repeats_nothing():
    assert generate() == TASKS
    assert [task.task_id for task in generate(7)] == [task.task_id for task in TASKS]
    assert generate(7) != TASKS
    assert len({task.task_id for task in TASKS}) == len({task.instruction for task in TASKS}) == 47


@pytest.mark.parametrize("task", TASKS, ids=IDS)
def test_a_task_is_supported_and_survives_json(task):
    assert unsupported_reason(task) == ""
    assert Task.model_validate_json(task.model_dump_json()) == task


def actions_of(task: Task) -> list[Action]:
    return [Action.model_validate(action) for action in task.oracle["actions"]]


@pytest.mark.parametrize("task", TASKS, ids=IDS)
def test_an_oracle_needs_only_the_keyboard_dialect_and_fits_its_limit(task):
    actions = actions_of(task)
    assert len(actions) <= (task.max_turns or 0)
    for action in actions:
        text = format_action(action, "keyboard")
        assert parse_completion(text, dialect="keyboard", screen=task.screen).action == action
    assert actions[-1].kind == "terminate"


# -- a paper model of Windows -----------------------------------------------------------------


class PaperWindows:
    """Files, programs, windows and the user's registry, and what the oracles' words do to them."""

    def __init__(self, task: Task) -> None:
        self.files: dict[str, str] = {}
        self.folders: set[str] = set()
        self.processes = ["explorer.exe", "powershell.exe"]
        self.titles = ["Program Manager"]
        self.values: dict[tuple[str, str], str] = {}
        self.keys = {"HKCU\\Environment"}
        self.has_run_dialog = False
        self.note: dict[str, Any] | None = None
        for step in task.config:
            if step["type"] == "write_file":
                self.files[step["parameters"]["path"]] = step["parameters"]["content"]

    def do(self, action: Action) -> None:
        if action.keys == ("super", "r"):
            self.has_run_dialog = True
        elif action.keys == ("ctrl", "a") and self.note:
            self.note["text"] = ""
        elif action.keys == ("ctrl", "s") and self.note:
            self.note["is_saving"] = True
            self._save()
        elif action.text is not None:
            self._type(action.text)

    def _type(self, text: str) -> None:
        if self.has_run_dialog:
            assert text.endswith("\n"), "the Run dialog waits for Return"
            self.has_run_dialog = False
            self._run(text[:-1])
        elif self.note and self.note.get("is_saving"):
            self.note["path"] = text.removesuffix("\n")
            self._save()
        else:
            assert self.note is not None, f"{text!r} is typed into nothing"
            self.note["text"] += text

    def _save(self) -> None:
        assert self.note is not None
        if self.note["path"]:
            self.files[self.note["path"]] = self.note["text"].replace("\n", "\r\n")
            self.note["is_saving"] = False

    def _run(self, command: str) -> None:
        program, _, rest = command.partition(" ")
        known = {title: title for title, _, line in DIALOGS if line == command}
        if program == "cmd" and rest.startswith("/c "):
            for part in rest[3:].split(" & "):
                self._cmd(part)
        elif program == "notepad":
            self.note = {"text": self.files.get(rest, ""), "path": rest}
            self._show("notepad.exe", "Notepad")
        elif program == "setx":
            name, value = shlex.split(rest)
            self.values["HKCU\\Environment", name] = value
        elif program == "reg":
            _, key, _, name, _, value = rest.split()
            self.keys.add(key)
            self.values[key, name] = value
        elif known:
            self._show("explorer.exe", next(iter(known)))
        else:
            found = next(p for p in PROGRAMS if p.command == command)
            self._show(f"{found.processes[-1]}.exe", f"Untitled - {found.title}")

    def _cmd(self, line: str) -> None:
        verb, *words = line.split()
        match verb:
            case "mkdir" | "md":
                parts = words[0].split("\\")
                self.folders |= {"\\".join(parts[:n]) for n in range(3, len(parts) + 1)}
            case "type":
                assert words[:2] == ["nul", ">"]
                self.files[words[2]] = ""
            case "ren":
                self.files[words[0].rsplit("\\", 1)[0] + "\\" + words[1]] = self.files.pop(words[0])
            case "copy":
                self.files[words[1]] = self.files[words[0]]
            case "move":
                assert words[1] in self.folders
                self.files[words[1] + "\\" + words[0].rsplit("\\", 1)[1]] = self.files.pop(words[0])
            case _:
                raise AssertionError(line)

    def _show(self, process: str, title: str) -> None:
        self.processes.append(process)
        self.titles.append(title)

    def read(self, getter: dict[str, Any]) -> Any:
        match getter["type"]:
            case "guest_processes":
                return self.processes
            case "guest_windows":
                last = len(self.titles) - 1
                return [{"title": t, "active": n == last} for n, t in enumerate(self.titles)]
            case "guest_files":
                inside = dict.fromkeys(self.files, False) | dict.fromkeys(self.folders, True)
                root = WORK + "\\"
                return [
                    {"path": path.removeprefix(root).replace("\\", "/"), "folder": is_folder}
                    for path, is_folder in inside.items()
                    if path.startswith(root)
                ]
            case "guest_setting":
                key = getter["key"]
                return {"key": key in self.keys, "value": self.values.get((key, getter["name"]))}
            case "vm_file":
                text = self.files.get(getter["path"])
                return None if text is None else text.encode()
        raise AssertionError(getter)

    def score(self, evaluator: dict[str, Any]) -> float:
        if isinstance(evaluator["func"], str):
            columns = [[evaluator[key]] for key in ("func", "result", "expected")]
        else:
            assert evaluator["conj"] == "mean"
            columns = [evaluator[key] for key in ("func", "result", "expected")]
        scores = [
            METRICS[name](self.read(result), expected["rules"], {})
            for name, result, expected in zip(*columns, strict=True)
        ]
        return sum(scores) / len(scores)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_every_oracle_scores_1_and_doing_nothing_0(seed):
    for task in generate(seed):
        paper = PaperWindows(task)
        assert paper.score(task.evaluator) == 0.0, task.task_id
        for action in actions_of(task):
            paper.do(action)
        assert paper.score(task.evaluator) == 1.0, task.task_id


def test_a_long_task_that_is_half_done_scores_between():
    for task in (task for task in TASKS if task.level == 4):
        paper, seen = PaperWindows(task), set()
        for action in actions_of(task):
            paper.do(action)
            seen.add(paper.score(task.evaluator))
        assert len(seen) >= 3, task.task_id
        assert 0.0 < min(seen - {0.0}) < 1.0


def test_no_oracle_solves_another_task():
    for task in TASKS:
        for other in TASKS:
            if other.level > 1 or task.level > 1 or other == task:
                continue
            paper = PaperWindows(task)
            for action in actions_of(other):
                paper.do(action)
            assert paper.score(task.evaluator) < 1.0, f"{other.task_id} solves {task.task_id}"
