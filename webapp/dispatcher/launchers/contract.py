"""What the dispatcher asks of a scheduler of a cluster."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum

from django.conf import settings

LEAVE_S = 15
"""What a gpu worker takes to leave, behind the time that its trainer gets for a checkpoint."""
LAST_LINES = 15


class LauncherError(Exception):
    """Raised when the scheduler cannot be asked, or refuses; the message says what it said."""


class Phase(Enum):
    """Where a job stands."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    """It ended by itself, without an error."""
    FAILED = "failed"
    STOPPED = "stopped"
    """A person ended it with the scheduler's own command."""
    TAKEN = "taken"
    """The scheduler ended it: preemption, time limit, a node that went away."""


@dataclass(frozen=True, slots=True)
class ClusterJob:
    """A job of ours as the scheduler sees it."""

    name: str
    phase: Phase
    state: str
    """The scheduler's own words: its state and, behind a colon, its reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRequest:
    """One attempt at one experiment."""

    experiment_id: int
    attempt: int
    num_gpus: int
    """On each of its nodes; 0 = it needs none."""
    num_nodes: int = 1
    nice: int = 0
    """How far behind the most urgent ones."""


def installation_mark() -> str:
    """Tells this installation's jobs from others'."""
    return hashlib.sha256(settings.SECRET_KEY.encode()).hexdigest()[:6]


class Launcher(ABC):
    """A scheduler. All methods raise LauncherError."""

    @abstractmethod
    def check(self) -> None:
        """Whether it can be used, and gives a job that it ends the time to save a checkpoint."""

    @abstractmethod
    def jobs(self) -> dict[str, ClusterJob]:
        """Ours by name, also those that ended a moment ago."""

    @abstractmethod
    def submit(self, wanted: JobRequest) -> str:
        """Queue a job; its name."""

    @abstractmethod
    def cancel(self, names: Collection[str]) -> None:
        """End jobs, or take them out of the queue."""

    @abstractmethod
    def last_lines(self, name: str) -> str:
        """The end of what a job wrote; "" where nothing is kept."""
