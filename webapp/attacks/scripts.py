"""What a scripted run does: set-up steps of a fresh desktop, then actions."""

import hashlib
from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel, ConfigDict

from training.contracts.types import Action, ActionKind, Task

DONE = Action(kind=ActionKind.TERMINATE, status="success")


class Script(BaseModel):
    """One scripted run."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    steps: tuple[dict[str, Any], ...] = ()
    """Set-up verbs that come behind the task's own, before the first turn."""
    actions: tuple[Action, ...] = (DONE,)

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()

    def task_for(self, task: Task) -> Task:
        """The task whose set-up is followed by these steps."""
        return task.model_copy(update={"config": (*task.config, *self.steps)})


def script_of_actions(actions: Iterable[dict[str, Any] | None]) -> Script:
    """What was recorded, done again; turns without an action are left out."""
    return Script(actions=tuple(Action.model_validate(action) for action in actions if action))
