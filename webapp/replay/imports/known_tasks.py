"""Which task a line is of: one of the chosen set, or a demonstration's own."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from training.contracts.task import MAX_FAMILY, MAX_ID
from training.contracts.types import Task
from webapp.accounts.models import Team
from webapp.experiments.models import TaskRecord, TaskSet, TaskStatus
from webapp.lib.request_values import check_text, shortened
from webapp.replay.formats.conversation import ReadProblem
from webapp.replay.services.demonstrated_tasks import demonstrations_of, ensure_demonstrated_task

ONLY_SHOWN = "came with an import: there is a demonstration of it, but no set-up and no evaluator"


@dataclass(slots=True)
class KnownTasks:
    """Tasks that a line may name."""

    team: Team
    task_set: TaskSet
    takes_unknown: bool
    """Lines of other tasks come in, too, as demonstrations only."""
    by_id: dict[str, TaskRecord] = field(default_factory=dict)

    @classmethod
    def of(cls, team: Team, task_set: TaskSet, *, takes_unknown: bool) -> KnownTasks:
        """Those of the set, and where others are taken those that came before."""
        found: dict[str, TaskRecord] = {}
        if takes_unknown:
            shown = TaskRecord.objects.filter(task_set__name=demonstrations_of(team))
            found |= {task.task_id: task for task in shown}
        return cls(
            team, task_set, takes_unknown, found | {task.task_id: task for task in task_set.tasks.current()}
        )

    def find(self, data: dict[str, Any], metadata: dict[str, Any], *, instruction: str) -> TaskRecord:
        """By metadata.task_id, id or task_id, without a chunk's suffix. An unknown one is not saved yet."""
        task_id = str(metadata.get("task_id") or data.get("id") or data.get("task_id") or "")
        if not task_id:
            raise ReadProblem("task_id", "missing")
        base = task_id.partition("_chunk")[0]
        task = self.by_id.get(task_id) or self.by_id.get(base)
        if task is not None:
            return task
        if not self.takes_unknown:
            raise ReadProblem(
                "task_id", f"the task set {self.task_set.name} has no task {shortened(task_id, 60)!r}"
            )
        if len(base) > MAX_ID:
            raise ReadProblem("task_id", f"longer than {MAX_ID} characters")
        check_text(base, "task_id")
        return _demonstrated(base, data, metadata, instruction)

    def save(self, task: TaskRecord) -> TaskRecord:
        """The row of a task that `find` made."""
        if task.pk is not None:
            return task
        row = ensure_demonstrated_task(self.team, task)
        self.by_id[row.task_id] = row
        return row


def _demonstrated(
    task_id: str, data: dict[str, Any], metadata: dict[str, Any], instruction: str
) -> TaskRecord:
    words = metadata.get("instruction") or data.get("instruction") or instruction or task_id
    domain = metadata.get("domain") or data.get("domain") or ""
    task = Task(task_id=task_id, instruction=str(words), family=str(domain)[:MAX_FAMILY])
    return TaskRecord.made_from(
        task, status=TaskStatus.UNSUPPORTED, reason=ONLY_SHOWN, reasons={"own": ONLY_SHOWN}
    )
