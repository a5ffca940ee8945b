"""What people change in the task library: their team's sets, tasks as versions, uploads as a whole."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.db import IntegrityError, transaction

from training.contracts.types import Task
from training.tasks.importers import LoadedTasks
from training.tasks.unusable_values import unusable
from webapp.accounts.models import AuditAction, Team
from webapp.accounts.services.audit_log import log_action
from webapp.experiments.models import TaskRecord, TaskSet
from webapp.experiments.services.task_sets import Written, write_tasks
from webapp.lib.request_values import BadValue, check_plain, check_text
from webapp.tasks_library.leakage import leaking

if TYPE_CHECKING:
    from django.contrib.auth.models import User

NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,59}")
MAX_TASKS = 5000
"""Of a set that people write or upload."""


class Refused(ValueError):
    """Raised when nothing of what was asked for was stored; `reasons` say why."""

    def __init__(self, reasons: list[str]) -> None:
        super().__init__("; ".join(reasons))
        self.reasons = reasons


@dataclass(frozen=True, slots=True)
class Brought:
    """What became of an upload."""

    task_set: TaskSet
    written: Written
    left_out: list[str]
    """Why, of each task that could not be read."""


def get_set(name: str, team: Team) -> TaskSet | None:
    """The team's own set; None when there is none of that name yet. Raises BadValue for a name in use."""
    if not NAME.fullmatch(name):
        raise BadValue("task_set", "use a-z, 0-9 and -, at most 60 of them")
    found = TaskSet.objects.filter(name=name).first()
    if found is not None and found.team_id != team.pk:
        raise BadValue("task_set", f"{name} is taken; take another name, or one of your team's own sets")
    return found


@transaction.atomic
def save_task(
    *, team: Team, user: User, set_name: str, task: Task, note: str = "", base: TaskRecord | None = None
) -> TaskRecord:
    """A new task, or the next version of the one with its id. Raises BadValue.

    `base` is the version that was edited: another one that was saved meanwhile is not overwritten.
    """
    check_text(note, "note")
    task_set = _lock(set_name, team, user, "written here")
    current = task_set.tasks.current().filter(task_id=task.task_id).first()
    if current is not None and (base is None or base.pk != current.pk):
        raise BadValue(
            "id", f"{task.task_id} has version {current.version} in {task_set.name} by now; edit that one"
        )
    if reason := next((reason for _, reason in leaking(task_set, [task])), ""):
        raise BadValue("split", reason)
    written = write_tasks(task_set=task_set, tasks=[task], author=user, note=note)
    if not written.rows:
        raise BadValue("", "nothing differs from the version that is there")
    _require_room(task_set)
    (saved,) = written.rows
    _record(AuditAction.SAVED, user, task_set, task=saved.task_id, version=saved.version)
    return saved


@transaction.atomic
def import_tasks(
    *, team: Team, user: User, set_name: str, origin: str, loaded: LoadedTasks, leaves_out: bool = False
) -> Brought:
    """Write all tasks of an upload into a set of the team as one revision. Raises BadValue and Refused.

    With `leaves_out`, what cannot be read or leaks stays away; else one such task refuses the whole.
    """
    task_set = _lock(set_name, team, user, origin)
    refused, good = list(loaded.refused), []
    for task in loaded.tasks:
        if problem := _problem_of(task):
            refused.append(f"{task.task_id[:80]}: {problem}")
        else:
            good.append(task)
    leaks = {task.task_id: reason for task, reason in leaking(task_set, good)}
    refused += [f"{task_id}: {reason}" for task_id, reason in leaks.items()]
    good = [task for task in good if task.task_id not in leaks]
    if not good or (refused and not leaves_out):
        raise Refused(refused or ["it holds no task"])
    written = write_tasks(task_set=task_set, tasks=good, author=user, note=f"from {origin}"[:300])
    _require_room(task_set)
    if written.rows:
        _record(AuditAction.IMPORTED, user, task_set, tasks=len(written.rows), file=origin)
    return Brought(task_set, written, refused)


def _problem_of(task: Task) -> str:
    try:
        check_plain(task.model_dump(mode="json"), "task")
    except BadValue as error:
        return str(error)
    return next((f"{path} {text}" for path, text in unusable(task)), "")


def _lock(name: str, team: Team, user: User, origin: str) -> TaskSet:
    """The set, made when it is new, and no one else's until the transaction ends."""
    found = get_set(name, team)
    if found is None:
        try:
            with transaction.atomic():
                found = TaskSet.objects.create(name=name, title=name, team=team, origin=origin[:200])
        except IntegrityError as error:
            raise BadValue("task_set", f"{name} was taken at this moment; try again") from error
    return TaskSet.objects.select_for_update().get(pk=found.pk)


def _require_room(task_set: TaskSet) -> None:
    if task_set.tasks.current().count() > MAX_TASKS:
        raise BadValue("task_set", f"{MAX_TASKS} tasks are the most of a set; begin another one")


def _record(action: AuditAction, user: User, task_set: TaskSet, **detail: object) -> None:
    log_action(action, person=user, team=task_set.team_id, kind="task set", object_id=task_set.name, **detail)
