"""Scripted solvers. They read only `task.oracle`, never the screen, and really drive the desktop."""

from collections.abc import Sequence

from training.contracts.types import Action, Task, Turn
from workers.tasks.errors import OracleError, TaskErrorKind


def next_action(task: Task, turns: Sequence[Turn]) -> Action:
    """The oracle's action after `turns`; the last one is terminate.

    Raises OracleError when the task has no oracle, the script is over, or the desktop refused its
    last action (its demonstration would teach a mistake).
    """
    script = solution(task)
    if turns and turns[-1].action_error:
        raise OracleError(TaskErrorKind.TASK, f"the desktop refused the oracle: {turns[-1].action_error}")
    if len(turns) >= len(script):
        raise OracleError(
            TaskErrorKind.TASK, f"{task.task_id}: the oracle's {len(script)} actions are used up"
        )
    return script[len(turns)]


def solution(task: Task) -> tuple[Action, ...]:
    """Every action of the oracle, in order. Raises OracleError when the task has none."""
    actions = task.oracle.get("actions")
    if not actions:
        raise OracleError(TaskErrorKind.UNSUPPORTED, f"{task.task_id} has no oracle")
    return tuple(Action.model_validate(action) for action in actions)
