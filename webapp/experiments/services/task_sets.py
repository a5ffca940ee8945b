"""Bringing tasks into the database: a changed task is another version, and what was used stays as it was."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from django.db import transaction
from django.db.models import Max

from training.contracts.types import Task
from training.tasks.supported_by.runtimes import TaskRuntime, reasons_unsupported
from webapp.experiments.models import TaskRecord, TaskSet, TaskStatus
from webapp.lib.request_values import BadValue, shortened

if TYPE_CHECKING:
    from django.contrib.auth.models import User

NAME = re.compile(r"[-a-zA-Z0-9_]{1,60}")
"""Of a set: what stands in the addresses of its pages. People's own sets keep to less."""


@dataclass(frozen=True)
class Import:
    task_set: TaskSet
    added: int
    changed: int
    unchanged: int
    unsupported: int
    """Tasks of the source that cannot run here; their rows say why."""
    runnable: Counter[str]
    """TaskRuntime -> tasks of the source that it can run."""
    gone: int
    """Tasks of earlier imports that the source no longer has: older revisions of the set keep them."""


@dataclass(slots=True)
class Written:
    """What became of tasks that were written into a set."""

    added: list[TaskRecord] = field(default_factory=list)
    changed: list[TaskRecord] = field(default_factory=list)
    """Another version."""
    num_refreshed: int = 0
    """The same version, of which another runtime or reason is known now."""
    num_unchanged: int = 0
    num_gone: int = 0

    @property
    def rows(self) -> list[TaskRecord]:
        return [*self.added, *self.changed]


@transaction.atomic
def import_task_set(*, name: str, origin: str, tasks: Iterable[Task], title: str = "") -> Import:
    """Make the set `name` what the source is: tasks that it no longer has leave the newest revision.

    Raises BadValue for a name that no address of a page can hold.
    """
    if not NAME.fullmatch(name):
        raise BadValue("name", f"{shortened(name)!r}: use letters, digits, - and _, 1 to 60 of them")
    task_set, _ = TaskSet.objects.get_or_create(name=name, defaults={"title": title or name})
    if task_set.origin != origin:
        TaskSet.objects.filter(pk=task_set.pk).update(origin=origin)
        task_set.origin = origin
    found = list(tasks)
    written = write_tasks(task_set=task_set, tasks=found, is_whole=True)
    runnable: Counter[str] = Counter()
    num_unsupported = 0
    for runs_on, status in task_set.tasks.current().values_list("runs_on", "status"):
        runnable.update(runs_on.strip("|").split("|"))
        num_unsupported += status == TaskStatus.UNSUPPORTED
    return Import(
        task_set,
        added=len(written.added),
        changed=len(written.changed) + written.num_refreshed,
        unchanged=written.num_unchanged,
        unsupported=num_unsupported,
        runnable=runnable,
        gone=written.num_gone,
    )


@transaction.atomic
def write_tasks(
    *,
    task_set: TaskSet,
    tasks: Iterable[Task],
    author: User | None = None,
    note: str = "",
    is_whole: bool = False,
) -> Written:
    """Add tasks, and another version of those that changed, as one revision of the set; a version begins
    without a verification. With `is_whole`, tasks that are not among them are withdrawn."""
    locked = TaskSet.objects.select_for_update().get(pk=task_set.pk)
    known = {row.task_id: row for row in locked.tasks.current()}
    is_new = not known and not locked.tasks.exists()
    revision = 1 if is_new else locked.revision + 1
    written, replaced, refreshed = Written(), [], []
    for task in tasks:
        fresh = _record(task_set, task)
        fresh.revision, fresh.author, fresh.note = revision, author, note[:300]
        row = known.pop(task.task_id, None)
        if row is None:
            written.added.append(fresh)
        elif row.spec != fresh.spec:
            fresh.version = row.version + 1
            replaced.append(row.pk)
            written.changed.append(fresh)
        elif any(getattr(row, name) != getattr(fresh, name) for name in JUDGED):
            for name in JUDGED:
                setattr(row, name, getattr(fresh, name))
            refreshed.append(row)
        else:
            written.num_unchanged += 1
    gone = [row.pk for row in known.values()] if is_whole else []
    _number_again(locked, written.added)
    locked.tasks.filter(pk__in=[*replaced, *gone]).update(replaced_in=revision)
    TaskRecord.objects.bulk_create(written.rows, batch_size=200)
    TaskRecord.objects.bulk_update(refreshed, JUDGED, batch_size=100)
    if written.rows or gone:
        TaskSet.objects.filter(pk=locked.pk).update(revision=revision)
        task_set.revision = revision
    written.num_gone = len(gone)
    written.num_refreshed = len(refreshed)
    return written


JUDGED = ["status", "reason", "runs_on", "reasons"]
"""What another version of Deskhand may say of the same task: no other version of the task."""


def _number_again(task_set: TaskSet, added: Collection[TaskRecord]) -> None:
    """Tasks that were withdrawn and come back go on with their numbers."""
    if not added:
        return
    ended = task_set.tasks.exclude(replaced_in=None).order_by()
    last = dict(ended.values_list("task_id").annotate(last=Max("version")))
    for row in added:
        row.version = last.get(row.task_id, 0) + 1


def _record(task_set: TaskSet, task: Task) -> TaskRecord:
    reasons = reasons_unsupported(task)
    reason = reasons[TaskRuntime.OWN]
    return TaskRecord.made_from(
        task,
        task_set=task_set,
        status=TaskStatus.UNSUPPORTED if reason else TaskStatus.SUPPORTED,
        reason=reason,
        runs_on="".join(f"|{runtime}" for runtime, missing in reasons.items() if not missing) + "|",
        reasons={runtime: missing for runtime, missing in reasons.items() if missing},
    )
