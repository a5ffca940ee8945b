"""/replay/imports: send a file, read what its check found, have it stored; the import page's buttons."""

from datetime import datetime
from typing import Any

from ninja import Field, File, Form, Router, Schema, Status, UploadedFile

from webapp.accounts.access import MemberRequest, member
from webapp.accounts.models import Role
from webapp.api.errors import Conflict
from webapp.api.paging import Page, page_of
from webapp.replay.access import get_import
from webapp.replay.imports.run import run_small_import
from webapp.replay.models import ReplayImport
from webapp.replay.services.imports import (
    approve_import,
    request_import,
    task_set_of,
    upload_of,
)

router = Router(tags=["replay"])


class KnownLine(Schema):
    """A line that holds what the team has already."""

    line: int
    entry: int
    """Id of the entry that holds the same; 0 = an earlier line does."""


class BadLine(Schema):
    """A line that cannot be stored."""

    line: int
    reason: str
    """As "field: what is wrong"."""


class ImportOut(Schema):
    """An import: queued, checking, checked, approved, storing, finished, cancelled or failed."""

    id: int
    file_name: str
    task_set: str | None = Field(None, alias="task_set.name")
    keep_labels: bool
    takes_unknown: bool
    status: str
    message: str
    percent: float
    """Of the file, by the reading that is going on."""
    num_new: int
    num_known: int
    num_bad: int
    num_stored: int
    known: list[KnownLine]
    """The first of them."""
    problems: list[BadLine]
    """The first of them."""
    created_at: datetime
    ended_at: datetime | None

    @staticmethod
    def resolve_known(job: ReplayImport) -> list[dict[str, Any]]:
        return [{"line": line, "entry": entry} for line, entry in job.known]

    @staticmethod
    def resolve_problems(job: ReplayImport) -> list[dict[str, Any]]:
        return [{"line": line, "reason": reason} for line, reason in job.problems]


class ImportPage(Page[ImportOut]):
    """Newest first; `next` is the `after` of the next page."""


@router.get("", response=ImportPage, operation_id="list_imports")
def list_imports(request: MemberRequest, after: str = "", limit: int = 50) -> Any:
    """Imports of the current team, newest first."""
    rows = ReplayImport.objects.filter(team=member(request).team).select_related("task_set")
    return page_of(rows, after, limit)


@router.post("", response={201: ImportOut}, operation_id="check_import")
def check(
    request: MemberRequest,
    file: File[UploadedFile],
    task_set: Form[str],
    keep_labels: Form[bool] = False,
    takes_unknown: Form[bool] = False,
) -> Any:
    """Have a file checked, as multipart/form-data. Nothing is stored before `start`. JSON lines, or Parquet;
    with `takes_unknown` lines of tasks that the set does not have come in as demonstrations only."""
    team = member(request, Role.ANNOTATOR).team
    job = request_import(
        team=team,
        user=request.user,
        task_set=task_set_of(task_set, team),
        upload=upload_of(file),
        keep_labels=keep_labels,
        takes_unknown=takes_unknown,
    )
    run_small_import(job)
    return Status(201, job)


@router.get("/{int:pk}", response=ImportOut, operation_id="show_import")
def show(request: MemberRequest, pk: int) -> Any:
    """How far it is, and what the check found."""
    return get_import(request, pk)


@router.post("/{int:pk}/start", response=ImportOut, operation_id="start_import")
def start(request: MemberRequest, pk: int) -> Any:
    """Store what the check found new; 409 unless it is checked."""
    job = get_import(request, pk, Role.ANNOTATOR)
    if not approve_import(job=job, user=request.user):
        raise Conflict(f"Import {pk} is {job.status}; only a checked one can be started.")
    run_small_import(job)
    return get_import(request, pk)


@router.post("/{int:pk}/cancel", response=ImportOut, operation_id="cancel_import")
def cancel(request: MemberRequest, pk: int) -> Any:
    """Store nothing more; what was stored stays. 409 when it has ended."""
    job = get_import(request, pk, Role.ANNOTATOR)
    if not job.cancel():
        raise Conflict(f"Import {pk} is {job.status}; it has ended.")
    return get_import(request, pk)
