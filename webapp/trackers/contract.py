"""What every tracker can be sent."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class TrackedRun:
    """An experiment, as a tracker names it."""

    experiment_id: int
    name: str
    config: dict[str, Any]
    """Every knob: its path with dots -> its value."""
    tags: dict[str, str]


@dataclass(frozen=True, slots=True)
class Point:
    """One value of one series."""

    name: str
    step: int
    value: float
    at: datetime


@dataclass(frozen=True, slots=True)
class Picture:
    """A sample trajectory's screens, side by side."""

    name: str
    step: int
    jpeg: bytes
    caption: str
    at: datetime


class TrackerError(Exception):
    """Raised when a tracker cannot be used; the message says which and what to do."""


class Sink(Protocol):
    """One run in one tracker. What a second call of the command sends again stands there once."""

    def begin(self, run: TrackedRun) -> None:
        """Find the run of this experiment or make it. Raises TrackerError."""

    def send(self, points: Sequence[Point]) -> None:
        """Store points; returns when they are stored. Raises TrackerError."""

    def show(self, pictures: Sequence[Picture]) -> None:
        """Store pictures; returns when they are stored. Raises TrackerError."""

    def end(self, status: str) -> None:
        """The experiment has ended with this status, or no more is sent. Raises TrackerError."""
