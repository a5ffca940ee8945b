"""/tasks: task sets and their tasks, which all teams share."""

from datetime import datetime
from typing import Any

from django.db.models import Count, Q
from django.shortcuts import get_object_or_404
from ninja import Field, Router, Schema

from webapp.accounts.access import MemberRequest, member
from webapp.api.paging import page_of
from webapp.experiments.models import TaskRecord, TaskSet, TaskStatus

router = Router(tags=["tasks"])


class TaskSetOut(Schema):
    """Tasks that were imported together."""

    name: str
    title: str
    origin: str
    num_tasks: int
    num_heldout: int
    num_unsupported: int
    """That our own verbs and evaluators cannot run."""


class TaskRow(Schema):
    """A task in a list."""

    id: int
    task_id: str
    instruction: str
    family: str
    level: int
    split: str
    status: str
    reason: str
    """Why our own verbs and evaluators cannot run it."""
    verified_at: datetime | None


class TaskDetail(TaskRow):
    """A task."""

    task_set: str = Field(alias="task_set.name")
    spec: dict[str, Any]
    reasons: dict[str, str]
    """Runtime -> why it cannot run it."""


class TaskPage(Schema):
    """By id; `next` is the `after` of the next page."""

    items: list[TaskRow]
    next: str | None


@router.get("", response=list[TaskSetOut], operation_id="list_task_sets")
def list_task_sets(request: MemberRequest) -> Any:
    """Every set."""
    member(request)
    return list(
        TaskSet.objects.order_by("name").annotate(
            num_tasks=Count("tasks"),
            num_heldout=Count("tasks", filter=Q(tasks__split="heldout")),
            num_unsupported=Count("tasks", filter=Q(tasks__status=TaskStatus.UNSUPPORTED)),
        )
    )


@router.get("/{slug:name}", response=TaskPage, operation_id="list_tasks")
def list_tasks(
    request: MemberRequest,
    name: str,
    family: str = "",
    split: str = "",
    words: str = "",
    after: str = "",
    limit: int = 50,
) -> Any:
    """Tasks of a set; `words`: of the instruction or id, all of them."""
    member(request)
    rows = get_object_or_404(TaskSet, name=name).tasks.defer("spec").with_words(words)
    if family:
        rows = rows.filter(family=family)
    if split:
        rows = rows.filter(split=split)
    return page_of(rows, after, limit, sort="task_id")


@router.get("/{slug:name}/{int:pk}", response=TaskDetail, operation_id="show_task")
def show_task(request: MemberRequest, name: str, pk: int) -> Any:
    """One task: what it asks, how it is set up and scored."""
    member(request)
    return get_object_or_404(TaskRecord.objects.select_related("task_set"), task_set__name=name, pk=pk)
