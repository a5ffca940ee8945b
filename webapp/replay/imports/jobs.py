"""Imports as rows: what people ask for, and what the process reports that reads the file.

    queued -> checking -> checked -> approved -> storing -> finished      (cancelled, failed: from all before)

The dispatcher starts a process for the next one, which claims the row by raising its number and writes under
that number alone: a process that was taken for dead changes nothing any more.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.core.files.storage import default_storage
from django.core.files.uploadedfile import UploadedFile
from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.utils import timezone

from webapp.accounts.models import AuditAction, Team
from webapp.accounts.services.audit_log import log_action
from webapp.dispatcher.child_work import BadEnd
from webapp.experiments.models import TaskSet
from webapp.lib.request_values import BadValue
from webapp.lib.transitions import sources_of
from webapp.live.event_publishing import publish
from webapp.replay.models import IMPORT_TRANSITIONS, ImportStatus, ReplayImport

MAX_UPLOAD_BYTES = 512 * 1024 * 1024
MAX_OPEN = 5
"""Of a team: each keeps its file on the disk."""
MAX_LOST = 3
HEARTBEAT_TIMEOUT = timedelta(seconds=60)
"""A line with many large screenshots takes seconds."""
FORGOTTEN_AFTER = timedelta(days=7)
BEGINS = {ImportStatus.QUEUED: ImportStatus.CHECKING, ImportStatus.APPROVED: ImportStatus.STORING}
ANEW = {"done_bytes": 0, "done_lines": 0}
UNCHECKED = {**ANEW, "num_new": 0, "num_known": 0, "num_bad": 0, "known": [], "problems": []}


class TakenAway(Exception):
    """Raised when the import was cancelled, or another process has it: stop, and store nothing more."""


# --- what people ask for -----------------------------------------------------------------------------


def task_set_of(name: str, team: Team) -> TaskSet:
    """The task set that a form or script names. Raises BadValue."""
    task_set = TaskSet.objects.of(team).filter(name=name).first()
    if task_set is None:
        raise BadValue("task_set", "choose the task set that the task ids belong to")
    return task_set


def upload_of(file: UploadedFile | None) -> UploadedFile:
    """The file that came with a request. Raises BadValue without one, or one that is too large."""
    if file is None:
        raise BadValue("file", "choose a .jsonl or .parquet file, or a .zip of ATIF documents")
    if not file.size:
        raise BadValue("file", "is empty")
    if file.size > MAX_UPLOAD_BYTES:
        raise BadValue("file", f"larger than {MAX_UPLOAD_BYTES // 2**20} MiB; split it")
    return file


def request_import(
    *,
    team: Team,
    user: User,
    task_set: TaskSet,
    upload: UploadedFile,
    keep_labels: bool = False,
    takes_unknown: bool = False,
) -> ReplayImport:
    """Keep the file and queue its check. Raises BadValue while too many are open."""
    if _open().filter(team=team).count() >= MAX_OPEN:
        raise BadValue("file", f"{MAX_OPEN} imports of your team are open; import or cancel one of them")
    path = default_storage.save(f"imports/{secrets.token_hex(16)}.jsonl", upload)
    with transaction.atomic():
        job = ReplayImport.objects.create(
            team=team,
            owner=user,
            task_set=task_set,
            file_name=upload.name or "file",
            path=path,
            size_bytes=upload.size or 0,
            keep_labels=keep_labels,
            takes_unknown=takes_unknown,
        )
        _publish(job)
    return job


def approve_import(*, job: ReplayImport, user: User) -> bool:
    """Have what is new stored, as `user`; False when it is not checked, or holds nothing new."""
    return bool(job.num_new) and _change(job, ImportStatus.APPROVED, owner=user)


def cancel_import(*, job: ReplayImport) -> bool:
    """Store nothing more; what has been stored stays. False when it has ended."""
    return _end(job, ImportStatus.CANCELLED, "Cancelled.")


# --- what the dispatcher asks ------------------------------------------------------------------------


def next_import() -> int | None:
    """The oldest one that no living process works on."""
    return _claimable().order_by("pk").values_list("pk", flat=True).first()


def lose_import(pk: int, end: BadEnd) -> None:
    """Its process ended badly: it ends with the reason, or says it and waits for another process."""
    job = ReplayImport.objects.filter(pk=pk).first()
    if job is None:
        return
    num_lost = job.num_lost + 1
    if not end.may_pass or num_lost >= MAX_LOST:
        many = f" {num_lost} processes died near line {job.done_lines + 1}; split the file."
        fail_import(job=job, message=end.why + (many if num_lost > 1 else ""))
        return
    with transaction.atomic():
        working = ReplayImport.objects.filter(pk=pk, claim=job.claim, status__in=(*BEGINS, *BEGINS.values()))
        if working.update(num_lost=num_lost, message=f"{end.why} Another one goes on.", heartbeat_at=None):
            _publish(job)


def forget_old_imports() -> Iterator[object]:
    """The dispatcher's chore: cancel those that no one decided on."""
    old = _open().filter(status=ImportStatus.CHECKED, created_at__lt=timezone.now() - FORGOTTEN_AFTER)
    for job in old:
        _end(job, ImportStatus.CANCELLED, f"Checked, and not imported for {FORGOTTEN_AFTER.days} days.")
        yield job


# --- what the process reports ------------------------------------------------------------------------


def claim_import(pk: int) -> ReplayImport | None:
    """Take it, to check or to store; None when another process was first or it ended."""
    job = _claimable().select_related("team", "owner", "task_set").filter(pk=pk).first()
    if job is None:
        return None
    status = ImportStatus(job.status)
    is_lost = job.heartbeat_at is not None
    if is_lost and job.num_lost >= MAX_LOST:
        where = f"near line {job.done_lines + 1}"
        fail_import(
            job=job, message=f"The process that read it died {MAX_LOST} times {where}; split the file."
        )
        return None
    to = BEGINS.get(status, status)
    values: dict[str, Any] = {"status": to, "num_lost": F("num_lost") + int(is_lost)}
    if to is ImportStatus.CHECKING:
        values |= UNCHECKED
    elif status is ImportStatus.APPROVED:
        values |= ANEW
    mine = _claimable().filter(pk=pk, claim=job.claim, status=status)
    if not mine.update(claim=job.claim + 1, heartbeat_at=timezone.now(), **values):
        return None
    job.refresh_from_db()
    return job


@transaction.atomic
def report_progress(*, job: ReplayImport, **values: Any) -> None:
    """Heartbeat with how far it is. Raises TakenAway, and with it the caller's transaction ends."""
    mine = ReplayImport.objects.filter(pk=job.pk, claim=job.claim, status=job.status)
    if not mine.update(heartbeat_at=timezone.now(), **values):
        raise TakenAway(str(job))
    for name, value in values.items():
        setattr(job, name, value)
    _publish(job)


def release_import(*, job: ReplayImport) -> None:
    """Another process may go on at once: this one has to stop."""
    ReplayImport.objects.filter(pk=job.pk, claim=job.claim).update(heartbeat_at=None)


def finish_check(*, job: ReplayImport) -> None:
    """Everything was read: a person decides, unless there is nothing to decide."""
    if job.num_new:
        _change(job, ImportStatus.CHECKED, by=job.claim, heartbeat_at=None, message="")
    elif job.num_known:
        _end(job, ImportStatus.FINISHED, "Everything in it that can be read is here already.", by=job.claim)
    else:
        fail_import(job=job, message="No line of it can be read.")


@transaction.atomic
def finish_import(*, job: ReplayImport) -> None:
    """Everything that was new is stored."""
    came_meanwhile = job.num_new - job.num_stored
    message = f"{came_meanwhile} came here another way since the check." if came_meanwhile else ""
    if _end(job, ImportStatus.FINISHED, message, by=job.claim):
        detail = {"entries": job.num_stored, "known": job.num_known, "bad": job.num_bad}
        log_action(AuditAction.IMPORTED, person=job.owner, team=job.team_id, kind="entry", **detail)


def fail_import(*, job: ReplayImport, message: str) -> None:
    """It cannot go on; `message` says what to do."""
    _end(job, ImportStatus.FAILED, message, by=job.claim)


# --- rows --------------------------------------------------------------------------------------------


def _open() -> QuerySet[ReplayImport]:
    return ReplayImport.objects.exclude(status__in=[one for one in ImportStatus if one.is_final()])


def _claimable() -> QuerySet[ReplayImport]:
    held = ~Q(heartbeat_at=None) & Q(heartbeat_at__gte=timezone.now() - HEARTBEAT_TIMEOUT)
    working = Q(status__in=BEGINS.values()) & ~held
    return ReplayImport.objects.filter(Q(status__in=BEGINS) | working)


def _end(job: ReplayImport, to: ImportStatus, message: str, *, by: int | None = None) -> bool:
    """Its file goes with it."""
    path = job.path
    values = {"message": message, "path": "", "ended_at": timezone.now(), "heartbeat_at": None}
    with transaction.atomic():
        ended = _change(job, to, by=by, **values)
        if ended and path:
            transaction.on_commit(lambda: default_storage.delete(path))
    return ended


def _change(job: ReplayImport, to: ImportStatus, *, by: int | None = None, **values: Any) -> bool:
    """Move it along IMPORT_TRANSITIONS; False when its status has changed meanwhile.

    `by` is the claim of the process that asks, which must be the last one.
    """
    rows = ReplayImport.objects.filter(pk=job.pk, status__in=sources_of(to, IMPORT_TRANSITIONS))
    if by is not None:
        rows = rows.filter(claim=by)
    with transaction.atomic():
        moved = rows.update(status=to, **values)
        if moved:
            job.refresh_from_db()
            _publish(job)
    return bool(moved)


def _publish(job: ReplayImport) -> None:
    publish(f"import.{job.pk}", "import.changed", {"status": job.status, "done_bytes": job.done_bytes})
