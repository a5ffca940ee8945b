"""Scored checkpoints inside a task, and which of them a trajectory reached."""

from typing import Any

from pydantic import Field

from training.contracts.wire import Wire


class Milestone(Wire):
    """Something that holds on the way to the goal: reached as soon as its evaluator says 1."""

    name: str = Field(min_length=1, max_length=80)
    evaluator: dict[str, Any]
    """As a task's, of files, windows, processes and settings: it looks while the agent works."""


class ReachedMilestone(Wire):
    """A milestone of the trajectory's task."""

    name: str
    turn: int
    """Index of the turn behind which it was seen first."""
