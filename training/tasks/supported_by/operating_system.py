"""The system that a task is made for: by its key `os`, its source, or its own paths and programs.

`open C:\\Users\\...` finds nothing on Linux, and nothing would say so before the first episode is scored.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from training.contracts.config.providers.provider_info import System
from training.contracts.types import Task
from training.tasks.supported_by.shell_commands import programs_of

TITLES: dict[System, str] = {"linux": "Linux", "windows": "Windows", "macos": "macOS", "android": "Android"}
UNSAID_RUNS_ON: tuple[System, ...] = ("linux", "windows")
"""Where a task may run that nothing says a system of."""


@dataclass(frozen=True, slots=True)
class Signs:
    places: re.Pattern[str]
    programs: frozenset[str] = frozenset()
    """In small letters; .exe is of Windows in any case."""


SIGNS: dict[System, Signs] = {
    "windows": Signs(
        re.compile(
            r"(?<![\w/])[a-z]:(?:\\|/(?!/))|^\\\\[\w.-]+\\\w"
            r"|%(?:userprofile|appdata|localappdata|programfiles|temp|windir|systemroot|public)%"
            r"|\$env:\w|(?<!\w)HK(?:CU|LM|CR|EY_[A-Z_]+)(?::|\\)"
            r"|(?<![\w-])ms-[a-z-]+:"
            r"|(?<![\w-])(?:Get|Set|Stop|Start|New|Remove)-(?:Process|Service|Item|ItemProperty|Content)\b",
            re.IGNORECASE,
        ),
        frozenset((
            "cmd", "powershell", "pwsh", "explorer", "notepad", "reg", "regedit", "del", "start",
            "schtasks", "taskkill", "tasklist", "wmic", "msedge", "mspaint",
        )),
    ),
    "android": Signs(
        re.compile(r"(?<![\w./])/(?:sdcard|storage/emulated|data/(?:data|local))/"), frozenset(("adb",))
    ),
    "macos": Signs(
        re.compile(r"(?<![\w.:/])/(?:Users|Applications|System/Library|Volumes)/|~/(?:Library|Applications)/"),
        frozenset(("osascript", "pbcopy", "pbpaste", "mdfind")),
    ),
    "linux": Signs(re.compile(r"(?<![\w.:/%])(?:/(?:home|usr|etc|tmp|opt|var|bin|root|mnt|proc)/|~/)")),
}  # fmt: skip
"""The first that a task shows is its system: /tmp and ~ are also known elsewhere."""
NO_PLACES = frozenset((
    "content", "content_base64", "func", "options", "rules", "spec", "text", "url", "urls_to_open",
))  # fmt: skip
"""Keys under which there are texts to compare or show, no places of the desktop."""
NAMES: dict[str, System] = {
    **{system: system for system in TITLES},
    **{"ubuntu": "linux", "win": "windows", "wos": "windows"},
}
"""As folders and ids write them."""
SOURCE_FOLDER = re.compile(r"(?:evaluation_)?examples_(ubuntu|linux|windows|macos|android)")
"""OSWorld's examples_windows, WindowsAgentArena's evaluation_examples_windows."""
ID_ENDING = re.compile(r"-(win|wos|windows|macos|android)(?:-\d+)?$", re.IGNORECASE)
OSWORLD_FOLDERS = ("evaluation_examples", "examples")
"""OSWorld's own tasks, all for Ubuntu unless they say another system."""


def system_gap(task: Task, here: System) -> str:
    """Why desktops of `here` cannot run it; "" when they can."""
    system, where = system_of(task)
    if system == here or (not system and here in UNSAID_RUNS_ON):
        return ""
    if not system:
        return f"os: nothing says that it is made for {TITLES[here]}, which these desktops run"
    return f"{where}: it is made for {TITLES[system]}, and these desktops run {TITLES[here]}"


def system_of(task: Task) -> tuple[System | Literal[""], str]:
    """(system, the place that says so); "" when nothing does."""
    if task.os:
        return task.os, "os"
    texts = [*_texts(list(task.config), "config"), *_texts(task.evaluator, "evaluator")]
    for system, signs in SIGNS.items():
        for where, text, programs in texts:
            if signs.places.search(text) or any(_is_of(system, program) for program in programs):
                return system, where
    return "", ""


def with_system_of_source(task: Task, source: Path | None) -> Task:
    """The task with `os` where its id or its file's folder says another system than the task itself shows."""
    if task.os:
        return task
    system = _system_by_name(task, source)
    judged = system_of(task)[0]
    if not system and not judged and source and _is_in(source.resolve().parts, OSWORLD_FOLDERS):
        system = "linux"
    return task.model_copy(update={"os": system}) if system and system != judged else task


def _system_by_name(task: Task, source: Path | None) -> System | Literal[""]:
    """The id's ending, else the nearest folder that names a system."""
    matches = [ID_ENDING.search(task.task_id)]
    if source:
        matches += [SOURCE_FOLDER.fullmatch(part) for part in reversed(source.resolve().parts)]
    return next((NAMES[match[1].lower()] for match in matches if match), "")


def _is_in(parts: tuple[str, ...], folders: tuple[str, ...]) -> bool:
    return any(parts[index : index + len(folders)] == folders for index in range(len(parts)))


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


def _is_of(system: System, program: str) -> bool:
    name = program.lower()
    return name in SIGNS[system].programs or (system == "windows" and name.endswith(".exe"))
