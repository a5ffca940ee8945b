"""Who sets a task up and scores it, by an experiment's desktops, and which tasks each can run. Torch-free."""

from __future__ import annotations

from enum import StrEnum

from training.contracts.config import OWN_DESKTOPS, DesktopConfig
from training.contracts.types import Task
from training.tasks.supported_by_osworld import osworld_reason
from training.tasks.supported_tasks import unsupported_reason


class Judge(StrEnum):
    """Set-up steps and evaluators of one making, on one kind of machine."""

    OWN = "own"
    """Deskhand's verbs and evaluators on its desktops."""
    OSWORLD_HERE = "osworld-here"
    """DesktopEnv on Deskhand's desktops."""
    OSWORLD = "osworld"
    """DesktopEnv on machines of its own providers, with everything that OSWorld's image has."""


def judge_of(desktops: DesktopConfig) -> Judge:
    """The judge of an experiment's tasks."""
    if desktops.provider != "osworld":
        return Judge.OWN
    return Judge.OSWORLD_HERE if desktops.osworld.machines in OWN_DESKTOPS else Judge.OSWORLD


def reason_of(judge: Judge, task: Task) -> str:
    """Why `judge` cannot run `task`, in words; "" when it can."""
    if judge is Judge.OWN:
        return unsupported_reason(task)
    # Whether host code may run is an experiment's choice; the environment asks again.
    return osworld_reason(task, on_our_desktops=judge is Judge.OSWORLD_HERE, allow_host_code=True)


def reasons_of(task: Task) -> dict[str, str]:
    """Every judge with its reason."""
    return {judge.value: reason_of(judge, task) for judge in Judge}
