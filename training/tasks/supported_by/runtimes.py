"""Task runtimes: what sets up and scores an experiment's tasks, and which tasks each can run."""

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from training.contracts.config import DesktopConfig, OsworldConfig
from training.contracts.config.providers.provider_info import ProviderSection
from training.contracts.config.providers.x11 import OFFICE
from training.contracts.types import Task
from training.tasks.supported_by.deskhand import unsupported_reason
from training.tasks.supported_by.desktop_programs import (
    DESK,
    OFFICE_IMAGE,
    WITH_OFFICE,
    Programs,
    office_machine,
)
from training.tasks.supported_by.operating_system import System, system_gap
from training.tasks.supported_by.osworld import osworld_reason


class TaskRuntime(StrEnum):
    """Set-up steps and evaluators of one making, on one kind of machine."""

    OWN = "own"
    """Deskhand's verbs and evaluators on its desktops."""
    OWN_OFFICE = "own-office"
    """The same where LibreOffice and Chromium are installed: image debian-office, x11 with image office."""
    OSWORLD_HERE = "osworld-here"
    """DesktopEnv on Deskhand's desktops: x11, or virtual machines without LibreOffice."""
    OSWORLD_OFFICE = "osworld-office"
    """DesktopEnv on virtual machines of the image debian-office."""
    OSWORLD = "osworld"
    """DesktopEnv on machines of its own providers, with everything that OSWorld's image has."""
    WINDOWS = "windows"
    """Deskhand's verbs and evaluators on Windows machines."""
    OSWORLD_WINDOWS = "osworld-windows"
    """DesktopEnv on Windows machines of its own providers."""
    MACOS = "macos"
    """Tasks for macOS, on desktops of env servers."""
    ANDROID = "android"
    """Tasks for Android, on desktops of env servers."""

    @property
    def system(self) -> System:
        """What its desktops run."""
        return SYSTEMS.get(self, "linux")


SYSTEMS: dict[TaskRuntime, System] = {
    TaskRuntime.WINDOWS: "windows",
    TaskRuntime.OSWORLD_WINDOWS: "windows",
    TaskRuntime.MACOS: "macos",
    TaskRuntime.ANDROID: "android",
}
"""Of those that are not Linux."""
OF_SYSTEMS: dict[System, TaskRuntime] = {
    "windows": TaskRuntime.WINDOWS,
    "macos": TaskRuntime.MACOS,
    "android": TaskRuntime.ANDROID,
}
"""Deskhand's verbs on the others."""
WHERE: dict[TaskRuntime, tuple[str, str]] = {
    TaskRuntime.OWN: ("on Deskhand's desktops", "desktops.provider: x11"),
    TaskRuntime.OWN_OFFICE: ("on desktops with LibreOffice and Chromium", "desktops.x11.image: office"),
    TaskRuntime.OSWORLD_HERE: ("with provider osworld on our desktops", "desktops.provider: osworld"),
    TaskRuntime.OSWORLD_OFFICE: (
        "with provider osworld on virtual machines of debian-office",
        "desktops.provider: osworld, osworld.machines: qemu, qemu.image: debian-office",
    ),
    TaskRuntime.OSWORLD: (
        "with provider osworld on OSWorld's own machines",
        "desktops.provider: osworld, osworld.machines: docker",
    ),
    TaskRuntime.WINDOWS: ("on Windows machines", "desktops.provider: windows"),
    TaskRuntime.OSWORLD_WINDOWS: (
        "with provider osworld on OSWorld's own Windows machines",
        "desktops.provider: osworld, osworld.machines: docker, osworld.os_type: Windows",
    ),
    TaskRuntime.MACOS: (
        "on macOS desktops of env servers",
        "desktops.provider: remote, remote.os_type: macOS",
    ),
    TaskRuntime.ANDROID: (
        "on Android desktops of env servers",
        "desktops.provider: remote, remote.os_type: Android",
    ),
}
"""Each in words, and the knobs that choose it."""

PLACE = re.compile(r"^(?:config|evaluator|milestones|os|instruction)[\w.\[\]]*: ")
"""Where in a task a reason begins."""
PROGRAMS: dict[TaskRuntime, Programs] = {
    TaskRuntime.OWN: DESK,
    TaskRuntime.OWN_OFFICE: WITH_OFFICE,
    TaskRuntime.OSWORLD_HERE: DESK,
    TaskRuntime.OSWORLD_OFFICE: office_machine(),
    **dict.fromkeys(OF_SYSTEMS.values(), DESK),
}
"""Of our desktops; OSWorld's own machines have everything."""


def runtime_of(desktops: DesktopConfig) -> TaskRuntime:
    section = desktops.provider_section
    if isinstance(section, OsworldConfig):
        return osworld_runtime(section, desktops.section_of(section.machine_provider))
    if section.system in OF_SYSTEMS:
        return OF_SYSTEMS[section.system]
    return TaskRuntime.OWN_OFFICE if image_of(section) in (OFFICE_IMAGE, OFFICE) else TaskRuntime.OWN


def osworld_runtime(section: OsworldConfig, machine: ProviderSection) -> TaskRuntime:
    """The runtime of provider osworld on desktops with the knobs `machine`, if they are ours."""
    if not section.machine_provider:
        return TaskRuntime.OSWORLD_WINDOWS if section.system == "windows" else TaskRuntime.OSWORLD
    return TaskRuntime.OSWORLD_OFFICE if image_of(machine) == OFFICE_IMAGE else TaskRuntime.OSWORLD_HERE


def image_of(section: ProviderSection) -> str:
    """The image that these knobs choose; "" where there is none to choose."""
    return str(section.desktop_fields().get("image", ""))


def reason_unsupported(runtime: TaskRuntime, task: Task) -> str:
    """Why `runtime` cannot run `task`, in words; "" when it can."""
    if gap := system_gap(task, runtime.system):
        return gap
    if runtime in (TaskRuntime.OWN, TaskRuntime.OWN_OFFICE, *OF_SYSTEMS.values()):
        return unsupported_reason(task, PROGRAMS[runtime])
    # Whether host code may run is an experiment's choice; the environment asks again.
    return osworld_reason(task, programs=PROGRAMS.get(runtime), allow_host_code=True)


def reasons_unsupported(task: Task) -> dict[str, str]:
    return {runtime.value: reason_unsupported(runtime, task) for runtime in TaskRuntime}


@dataclass(frozen=True, slots=True)
class ReasonGroup:
    """Tasks that miss the same."""

    reason: str
    """Without its place in a task."""
    task_ids: tuple[str, ...]


def grouped_reasons(reasons: Iterable[tuple[str, str]]) -> list[ReasonGroup]:
    """(task id, why a runtime cannot run it) of many tasks, by what is missing; the largest group first."""
    found: dict[str, dict[str, None]] = defaultdict(dict)
    for task_id, reason in reasons:
        for part in filter(None, reason.split("; ")):
            found[PLACE.sub("", part)][task_id] = None
    groups = [ReasonGroup(reason, tuple(ids)) for reason, ids in found.items()]
    return sorted(groups, key=lambda group: -len(group.task_ids))
