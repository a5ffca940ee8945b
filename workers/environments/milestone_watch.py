"""Looks after each turn which milestones of a task hold by now, where the environment can be looked into."""

from collections.abc import Iterable

from training.contracts.milestone import ReachedMilestone
from training.contracts.types import Task
from workers.environments.contract import Environment, Inspectable
from workers.tasks.errors import EvaluatorError


class MilestoneWatch:
    """The milestones of one episode. Once reached, one is not looked at again."""

    def __init__(
        self, task: Task, environment: Environment, reached: Iterable[ReachedMilestone] = ()
    ) -> None:
        self._environment = environment
        self.reached = list(reached)
        """In the order in which they were seen; those that are given were reached before."""
        known = {one.name for one in self.reached}
        self._waiting = [one for one in task.milestones if one.name not in known]

    def look(self, turn: int, *, is_last: bool = False) -> bool:
        """See what holds behind a turn; True when something was reached.

        What cannot be read while the agent works is not reached yet; at the end it raises EvaluatorError.
        """
        if not self._waiting or turn < 0 or not isinstance(self._environment, Inspectable):
            return False
        found: set[str] = set()
        for milestone in self._waiting:
            try:
                found.update(self._environment.reached([milestone]))
            except EvaluatorError:
                if is_last:
                    raise
        self.reached += [
            ReachedMilestone(name=one.name, turn=turn) for one in self._waiting if one.name in found
        ]
        self._waiting = [one for one in self._waiting if one.name not in found]
        return bool(found)
