"""A failure of the child as the error that an episode knows."""

from __future__ import annotations

from typing import NoReturn

from workers.desktops.console_contract import ActionRefused
from workers.desktops.contract import EnvError
from workers.environments.osworld.child_messages import Failure, FailureKind
from workers.tasks.errors import EvaluatorError, SetupError, TaskErrorKind


def raise_failure(call: str, failure: Failure) -> NoReturn:
    """Raise what `failure` of `call` means for the trajectory."""
    match failure.kind:
        case FailureKind.ACTION:
            raise ActionRefused(failure.message)
        case FailureKind.SETUP:
            raise SetupError(TaskErrorKind.TASK, failure.message)
        case FailureKind.EVALUATOR:
            raise EvaluatorError(TaskErrorKind.TASK, failure.message)
        case FailureKind.UNSUPPORTED if call == "evaluate":
            raise EvaluatorError(TaskErrorKind.UNSUPPORTED, failure.message)
        case FailureKind.UNSUPPORTED:
            raise SetupError(TaskErrorKind.UNSUPPORTED, failure.message)
    raise EnvError(f"OSWorld {call}: {failure.message}")
