"""/tasks: task sets and their tasks, those of the team and those that all teams share."""

import json
from datetime import datetime
from typing import Any

from django.db.models import Count, Q
from django.shortcuts import get_object_or_404
from ninja import Field, File, Form, Router, Schema, Status
from ninja.files import UploadedFile

from webapp.accounts.access import MemberRequest, member
from webapp.accounts.models import Role
from webapp.api.errors import Conflict
from webapp.api.paging import Page, page_of
from webapp.experiments.models import TaskRecord, TaskSet, TaskStatus
from webapp.lib.request_values import MAX_WHOLE, BadValue
from webapp.tasks_library.services.task_sets import Refused, import_tasks, save_task
from webapp.tasks_library.services.verifications import MAX_ROUNDS, queue_verification
from webapp.tasks_library.task_text import read_task
from webapp.tasks_library.upload import read_upload

router = Router(tags=["tasks"])
MAX_REASONS = 20
"""In one error."""


class TaskSetOut(Schema):
    """Tasks that were imported or written together."""

    name: str
    title: str
    origin: str
    revision: int
    """The newest one; what a launch keeps to."""
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
    version: int
    verified_at: datetime | None


class TaskDetail(TaskRow):
    """A task."""

    task_set: str = Field(alias="task_set.name")
    spec: dict[str, Any]
    revision: int
    """Of the set, from which this version stands."""
    replaced_in: int | None
    """Revision from which another version, or none, stands in its place; null: it is the newest."""
    note: str
    reasons: dict[str, str]
    """Runtime -> why it cannot run it."""


class TaskPage(Page[TaskRow]):
    """By id; `next` is the `after` of the next page."""


class TaskIn(Schema):
    """A task to write."""

    task: dict[str, Any]
    """In OSWorld's schema, with id, instruction, evaluator and what else there is."""
    note: str = Field("", max_length=300)
    base: int | None = Field(None, ge=0, le=MAX_WHOLE)
    """Id of the version that was edited; null for a task that is not there yet."""


class VerifyIn(Schema):
    """How often."""

    rounds: int = Field(1, ge=1, le=MAX_ROUNDS)
    """Runs of the oracle, and as many of doing nothing."""


class QueuedOut(Schema):
    """Trajectories that wait for desktops now."""

    num_queued: int


class UnsupportedOut(Schema):
    """A task that Deskhand's own desktops cannot run."""

    task_id: str
    reason: str


class UploadOut(Schema):
    """What became of a file of tasks."""

    task_set: str
    revision: int
    num_added: int
    num_changed: int
    """As another version."""
    num_unchanged: int
    unsupported: list[UnsupportedOut]
    left_out: list[str]
    """Why, of each task that was left out."""


@router.get("", response=list[TaskSetOut], operation_id="list_task_sets")
def list_task_sets(request: MemberRequest) -> Any:
    """Every set that the team can practise."""
    current = Q(tasks__replaced_in=None)
    rows = TaskSet.objects.listed(member(request).team)
    return list(
        rows.annotate(
            num_tasks=Count("tasks", filter=current),
            num_heldout=Count("tasks", filter=current & Q(tasks__split="heldout")),
            num_unsupported=Count("tasks", filter=current & Q(tasks__status=TaskStatus.UNSUPPORTED)),
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
    """Tasks of a set in their newest versions; `words`: of the instruction or id, all of them."""
    task_set = get_object_or_404(TaskSet.objects.of(member(request).team), name=name)
    rows = task_set.tasks.current().defer("spec").with_words(words)
    if family:
        rows = rows.filter(family=family)
    if split:
        rows = rows.filter(split=split)
    return page_of(rows, after, limit, sort="task_id")


@router.get("/{slug:name}/{int:pk}", response=TaskDetail, operation_id="show_task")
def show_task(request: MemberRequest, name: str, pk: int) -> Any:
    """One version of a task: what it asks, how it is set up and scored."""
    rows = TaskRecord.objects.of(member(request).team).select_related("task_set")
    return get_object_or_404(rows, task_set__name=name, pk=pk)


@router.post("/{slug:name}", response={201: TaskDetail}, operation_id="save_task")
def save(request: MemberRequest, name: str, body: TaskIn) -> Any:
    """Write a task, or the next version of one, into a set of the team; the set is made when it is new."""
    team = member(request, Role.OPERATOR).team
    base = None
    if body.base is not None:
        base = get_object_or_404(TaskRecord.objects.of(team), pk=body.base)
    reading = read_task(json.dumps(body.task))
    if reading.task is None or reading.is_refused:
        problem = next(one for one in reading.problems if one.is_refusal)
        raise BadValue(f"task.{problem.path}".rstrip("."), problem.text)
    saved = save_task(
        team=team, user=request.user, set_name=name, task=reading.task, note=body.note, base=base
    )
    return Status(201, saved)


@router.post("/{slug:name}/{int:pk}/verification", response={201: QueuedOut}, operation_id="verify_task")
def verify(request: MemberRequest, name: str, pk: int, body: VerifyIn) -> Any:
    """Queue runs of its oracle and of doing nothing; their trajectories have purpose verification."""
    team = member(request, Role.OPERATOR).team
    rows = TaskRecord.objects.of(team).filter(task_set__name=name)
    found = get_object_or_404(rows, pk=pk)
    if found.status != TaskStatus.SUPPORTED:
        raise Conflict(f"Deskhand's desktops cannot run it: {found.reason}")
    num = queue_verification(task=found, team_id=team.pk, rounds=body.rounds, user=request.user)
    if not num:
        raise Conflict("Enough runs of this task wait already.")
    return Status(201, {"num_queued": num})


@router.post("/{slug:name}/files", response={201: UploadOut}, operation_id="upload_tasks")
def upload(
    request: MemberRequest,
    name: str,
    file: File[UploadedFile],
    heldout: Form[float] = 0.2,
    leave_out: Form[bool] = False,
) -> Any:
    """Bring in a .json, .zip, .parquet or .jsonl of tasks, as a whole or not at all.

    `heldout`: share of those whose split the file does not name; `leave_out`: leave out what cannot be read,
    and held-out tasks whose instruction is practised."""
    team = member(request, Role.OPERATOR).team
    if not 0 <= heldout <= 1:
        raise BadValue("heldout", "must be from 0 to 1")
    try:
        brought = import_tasks(
            team=team,
            user=request.user,
            set_name=name,
            origin=(file.name or "")[:120],
            loaded=read_upload(file, heldout_fraction=heldout),
            leaves_out=leave_out,
        )
    except Refused as refused:
        raise BadValue("file", "; ".join(refused.reasons[:MAX_REASONS])) from refused
    written = brought.written
    unsupported = [row for row in written.rows if row.status == TaskStatus.UNSUPPORTED]
    return Status(
        201,
        {
            "task_set": brought.task_set.name,
            "revision": brought.task_set.revision,
            "num_added": len(written.added),
            "num_changed": len(written.changed),
            "num_unchanged": written.num_unchanged,
            "unsupported": unsupported,
            "left_out": brought.left_out,
        },
    )
