"""What can go wrong around a task.

TaskError
  SetupError       the desktop could not be prepared
  EvaluatorError   the desktop could not be scored; the trajectory is errored, never scored 0
  OracleError      the scripted solution cannot go on
"""

from enum import StrEnum


class TaskErrorKind(StrEnum):
    """Who can mend it."""

    UNSUPPORTED = "unsupported"
    """The task uses a verb, getter or metric that does not exist here."""
    TASK = "task"
    """The task's own definition is wrong, e.g. a command that fails."""
    DESKTOP = "desktop"
    """The desktop did not answer; the same task may work on another one."""


class TaskError(Exception):
    """Root of this package's errors."""

    def __init__(self, kind: TaskErrorKind, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class SetupError(TaskError):
    """Raised when a setup step failed."""


class EvaluatorError(TaskError):
    """Raised when no score can be given."""


class OracleError(TaskError):
    """Raised when an oracle has no next action."""
