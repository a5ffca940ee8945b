"""Getters of the keyboard tasks: what `workers.tasks.evaluators.keyboard_task_checkers` compare."""

from collections.abc import Callable
from typing import Any

from workers.tasks.evaluators.guest_state import state_of
from workers.tasks.task_desktop_contract import TaskDesktop

Getter = dict[str, Any]


def guest_processes(getter: Getter, desktop: TaskDesktop) -> list[str]:
    return state_of(desktop).processes(desktop)


def guest_windows(getter: Getter, desktop: TaskDesktop) -> list[dict[str, Any]]:
    return state_of(desktop).windows(desktop)


def guest_files(getter: Getter, desktop: TaskDesktop) -> list[dict[str, Any]]:
    return state_of(desktop).files(desktop, str(getter["folder"]))


def guest_setting(getter: Getter, desktop: TaskDesktop) -> dict[str, Any]:
    return state_of(desktop).setting(desktop, str(getter["key"]), str(getter["name"]))


WINDOWS_GETTERS: dict[str, Callable[[Getter, TaskDesktop], Any]] = {
    "guest_processes": guest_processes,
    "guest_windows": guest_windows,
    "guest_files": guest_files,
    "guest_setting": guest_setting,
}
