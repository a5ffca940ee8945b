"""The system that a task is made for, by the paths and programs of its set-up and getters.

`open C:\\Users\\...` finds nothing on Linux, and nothing would say so before the first episode is scored.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Literal

from training.contracts.config.providers.provider_info import System
from training.contracts.types import Task
from training.tasks.supported_by.shell_commands import programs_of

TITLES: dict[System, str] = {"linux": "Linux", "windows": "Windows"}
WINDOWS_PLACE = re.compile(
    r"(?<![\w/])[a-z]:(?:\\|/(?!/))"
    r"|%(?:userprofile|appdata|localappdata|programfiles|temp|windir|systemroot|public)%",
    re.IGNORECASE,
)
WINDOWS_PROGRAMS = frozenset((
    "cmd", "powershell", "pwsh", "explorer", "notepad", "reg", "regedit",
    "schtasks", "taskkill", "tasklist", "wmic", "msedge", "mspaint",
))  # fmt: skip
LINUX_PLACE = re.compile(r"(?<![\w.:/%])(?:/(?:home|usr|etc|tmp|opt|var|bin|root|mnt|proc)/|~/)")
NO_PLACES = frozenset((
    "content", "content_base64", "func", "options", "rules", "spec", "text", "url", "urls_to_open",
))  # fmt: skip
"""Keys under which there are texts to compare or show, no places of the desktop."""


def system_gap(task: Task, here: System) -> str:
    """Why desktops of `here` cannot run it; "" when they can."""
    system, where = system_of(task)
    if not system or system == here:
        return ""
    return f"{where}: it is made for {TITLES[system]}, and these desktops run {TITLES[here]}"


def system_of(task: Task) -> tuple[System | Literal[""], str]:
    """(system, the place that says so); "" when nothing does."""
    if task.os:
        return task.os, "os"
    texts = [*_texts(list(task.config), "config"), *_texts(task.evaluator, "evaluator")]
    for where, text, programs in texts:
        if WINDOWS_PLACE.search(text) or any(map(_is_of_windows, programs)):
            return "windows", where
    for where, text, _ in texts:
        if LINUX_PLACE.search(text):
            return "linux", where
    return "", ""


def _texts(value: Any, where: str) -> Iterator[tuple[str, str, list[str]]]:
    """(place, text, programs that it starts) of what may name a place of the desktop."""
    if isinstance(value, str):
        yield where, value, []
    elif isinstance(value, dict):
        for key in (key for key in value if key not in NO_PLACES):
            if key == "command" and isinstance(value[key], str | list | tuple):
                words = value[key]
                text = words if isinstance(words, str) else " ".join(map(str, words))
                yield f"{where}.{key}", text, programs_of(words)
            else:
                yield from _texts(value[key], f"{where}.{key}")
    elif isinstance(value, list | tuple):
        for index, inner in enumerate(value):
            yield from _texts(inner, f"{where}[{index}]")


def _is_of_windows(program: str) -> bool:
    name = program.lower()
    return name.endswith(".exe") or name in WINDOWS_PROGRAMS
