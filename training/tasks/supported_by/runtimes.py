"""Task runtimes: what sets up and scores an experiment's tasks, and which tasks each can run."""

from __future__ import annotations

from enum import StrEnum

from training.contracts.config import DesktopConfig, OsworldConfig
from training.contracts.types import Task
from training.tasks.supported_by.deskhand import unsupported_reason
from training.tasks.supported_by.osworld import osworld_reason


class TaskRuntime(StrEnum):
    """Set-up steps and evaluators of one making, on one kind of machine."""

    OWN = "own"
    """Deskhand's verbs and evaluators on its desktops."""
    OSWORLD_HERE = "osworld-here"
    """DesktopEnv on Deskhand's desktops."""
    OSWORLD = "osworld"
    """DesktopEnv on machines of its own providers, with everything that OSWorld's image has."""


def runtime_of(desktops: DesktopConfig) -> TaskRuntime:
    """The runtime of an experiment with these desktops."""
    section = desktops.provider_section
    if not isinstance(section, OsworldConfig):
        return TaskRuntime.OWN
    return TaskRuntime.OSWORLD_HERE if section.machine_provider else TaskRuntime.OSWORLD


def reason_unsupported(runtime: TaskRuntime, task: Task) -> str:
    """Why `runtime` cannot run `task`, in words; "" when it can."""
    if runtime is TaskRuntime.OWN:
        return unsupported_reason(task)
    # Whether host code may run is an experiment's choice; the environment asks again.
    return osworld_reason(task, on_our_desktops=runtime is TaskRuntime.OSWORLD_HERE, allow_host_code=True)


def reasons_unsupported(task: Task) -> dict[str, str]:
    """Every runtime with its reason."""
    return {runtime.value: reason_unsupported(runtime, task) for runtime in TaskRuntime}
