"""What evaluators read: files and command output of the desktop, and constants of the task."""

import json
from collections.abc import Callable
from typing import Any

from workers.tasks.errors import EvaluatorError, TaskErrorKind
from workers.tasks.evaluators.keyboard_task_getters import WINDOWS_GETTERS
from workers.tasks.evaluators.office_document import office_document
from workers.tasks.task_desktop_contract import TaskDesktop

Getter = dict[str, Any]


def read(getter: Getter, desktop: TaskDesktop) -> Any:
    """The value a getter names; None for a file that is not there."""
    function = GETTERS.get(str(getter.get("type")))
    if function is None:
        raise EvaluatorError(TaskErrorKind.UNSUPPORTED, f"getter {getter.get('type')} is not supported")
    return function(getter, desktop)


def vm_file(getter: Getter, desktop: TaskDesktop) -> bytes | None:
    return desktop.agent.get(str(getter["path"]))


def vm_command_line(getter: Getter, desktop: TaskDesktop) -> str:
    """What the command writes; its exit code does not matter, as in OSWorld."""
    return desktop.agent.execute(getter["command"], shell=bool(getter.get("shell", False))).output


def rule(getter: Getter, desktop: TaskDesktop) -> Any:
    return getter["rules"]


def inline(getter: Getter, desktop: TaskDesktop) -> bytes:
    return str(getter["content"]).encode()


def saved_document(getter: Getter, desktop: TaskDesktop) -> str | None:
    """An OpenDocument file's values as JSON; None when it is not there or cannot be read."""
    values = office_document(desktop.agent.get(str(getter["path"])))
    return None if values is None else json.dumps(values)


GETTERS: dict[str, Callable[[Getter, TaskDesktop], Any]] = {
    "vm_file": vm_file,
    "vm_command_line": vm_command_line,
    "rule": rule,
    "inline": inline,
    "office_document": saved_document,
    **WINDOWS_GETTERS,
}
