"""A person makes a task at a desktop: steps that the page requests are done, and the desktop is looked at.

clean -> [steps, what the person arranges]* -> start here -> what the person does -> end
"""

from collections.abc import Callable

from webapp.worker_door import task_drafts as calls
from webapp.worker_door.assignments import Assignment
from workers.desktops.contract import EnvError
from workers.environments.contract import Arrangeable
from workers.environments.registry import Environment
from workers.reports.current import reports
from workers.tasks.errors import SetupError

CANNOT = "tasks cannot be made on desktops of provider {provider}"


class TaskDraft:
    """Of one trajectory whose desktop a person arranges."""

    def __init__(self, assignment: Assignment, environment: Environment) -> None:
        if not isinstance(environment, Arrangeable):
            raise EnvError(CANNOT.format(provider=environment.provider), permanent=True)
        self._pk = assignment.row.pk
        self._environment = environment
        self._num_done = 0
        self._has_begun = self._has_started = False

    def poll(self, count_turns: Callable[[], int | None]) -> None:
        """Do what the page requests; `count_turns`: turns so far, None while one is under way."""
        if not self._has_begun:
            self._see("clean", 0)
            self._has_begun = True
        wanted = reports().request(calls.wanted_of_draft, self._pk, self._num_done)
        for step in wanted.steps:
            reports().report(calls.note_draft_step, self._pk, self._num_done, self._do(step))
            self._num_done += 1
        if wanted.is_starting and not self._has_started and (num_turns := count_turns()) is not None:
            self._see("start", num_turns)
            self._has_started = True

    def finish(self, num_turns: int) -> None:
        """The person is done."""
        if self._has_started:
            self._see("end", num_turns)

    def _see(self, moment: calls.Moment, num_turns: int) -> None:
        reports().report(calls.note_draft_state, self._pk, moment, self._environment.look(), num_turns)

    def _do(self, step: dict[str, object]) -> str:
        """ "" or why it failed."""
        try:
            self._environment.arrange(step)
        except (SetupError, EnvError) as error:
            if isinstance(error, EnvError) and error.permanent:
                raise
            return str(error)
        return ""
