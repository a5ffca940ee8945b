"""Bringing tasks into the database: an import adds and updates, and deletes nothing that was used."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from django.db import transaction

from training.contracts.types import Task
from training.tasks.supported_by.runtimes import TaskRuntime, reasons_unsupported
from webapp.experiments.models import TaskRecord, TaskSet, TaskStatus

GONE = "not in the source any more (last import)"


@dataclass(frozen=True)
class Import:
    """What an import did."""

    task_set: TaskSet
    added: int
    changed: int
    unchanged: int
    unsupported: int
    """Tasks of the source that cannot run here; their rows say why."""
    runnable: Counter[str]
    """TaskRuntime -> tasks of the source that it can run."""
    gone: int
    """Rows of earlier imports that the source no longer has; they are kept, as unsupported."""


@transaction.atomic
def import_task_set(*, name: str, origin: str, tasks: Iterable[Task], title: str = "") -> Import:
    """Add or update the set `name`. A changed task loses its verification."""
    task_set, _ = TaskSet.objects.get_or_create(name=name, defaults={"title": title or name})
    if task_set.origin != origin:
        TaskSet.objects.filter(pk=task_set.pk).update(origin=origin)
        task_set.origin = origin
    known = {row.task_id: row for row in task_set.tasks.all()}
    added: list[TaskRecord] = []
    changed: list[TaskRecord] = []
    num_unchanged = num_unsupported = 0
    runnable: Counter[str] = Counter()
    for task in tasks:
        fresh = _record(task_set, task)
        runnable.update(fresh.runs_on.strip("|").split("|"))
        num_unsupported += fresh.status == TaskStatus.UNSUPPORTED
        row = known.pop(task.task_id, None)
        if row is None:
            added.append(fresh)
        elif all(getattr(row, name) == getattr(fresh, name) for name in COMPARED):
            num_unchanged += 1
        else:
            fresh.pk = row.pk
            changed.append(fresh)
    TaskRecord.objects.bulk_create(added, batch_size=200)
    TaskRecord.objects.bulk_update(changed, FIELDS, batch_size=100)
    gone = task_set.tasks.filter(pk__in=[row.pk for row in known.values()])
    gone.update(status=TaskStatus.UNSUPPORTED, reason=GONE, runs_on="")
    return Import(
        task_set, len(added), len(changed), num_unchanged, num_unsupported, runnable, gone=len(known)
    )


COMPARED = ("spec", "status", "reason", "runs_on", "reasons")
FIELDS = [
    "instruction",
    "family",
    "level",
    "split",
    "spec",
    "status",
    "reason",
    "runs_on",
    "reasons",
    "oracle_score",
    "idle_score",
    "verified_at",
]


def _record(task_set: TaskSet, task: Task) -> TaskRecord:
    reasons = reasons_unsupported(task)
    reason = reasons[TaskRuntime.OWN]
    return TaskRecord(
        task_set=task_set,
        task_id=task.task_id,
        instruction=task.instruction,
        family=task.family,
        level=task.level,
        split=task.split,
        spec=task.model_dump(mode="json"),
        status=TaskStatus.UNSUPPORTED if reason else TaskStatus.SUPPORTED,
        reason=reason,
        runs_on="".join(f"|{runtime}" for runtime, missing in reasons.items() if not missing) + "|",
        reasons={runtime: missing for runtime, missing in reasons.items() if missing},
    )
