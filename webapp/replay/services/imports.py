"""Imports as rows: what people ask for, and how the process ends them that reads the file.

queued -> checking -> checked -> approved -> storing -> finished      (cancelled, failed: from all before)
"""

import secrets
from collections.abc import Iterator
from datetime import timedelta

from django.contrib.auth.models import User
from django.core.files.storage import default_storage
from django.core.files.uploadedfile import UploadedFile
from django.db import transaction
from django.utils import timezone

from webapp.accounts.models import AuditAction, Team
from webapp.accounts.services.audit_log import log_action
from webapp.experiments.models import TaskSet
from webapp.lib.request_values import BadValue
from webapp.replay.formats.registry import uploads
from webapp.replay.models import ImportStatus, ReplayImport

MAX_UPLOAD_BYTES = 512 * 1024 * 1024
MAX_OPEN = 5
"""Of a team: each keeps its file on the disk."""
FORGOTTEN_AFTER = timedelta(days=7)

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
        raise BadValue("file", f"choose a file: {uploads()}")
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
    if ReplayImport.objects.filter(team=team, ended_at=None).count() >= MAX_OPEN:
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
        job.publish()
    return job


def approve_import(*, job: ReplayImport, user: User) -> bool:
    """Have what is new stored, as `user`; False when it is not checked, or holds nothing new."""
    return bool(job.num_new) and job.move(ImportStatus.APPROVED, by_its_process=False, owner=user)


def forget_old_imports() -> Iterator[object]:
    """The dispatcher's upkeep: cancel those that no one decided on."""
    old = ReplayImport.objects.filter(
        status=ImportStatus.CHECKED, created_at__lt=timezone.now() - FORGOTTEN_AFTER
    )
    why = f"Checked, and not imported for {FORGOTTEN_AFTER.days} days."
    for job in old:
        job.end(ImportStatus.CANCELLED, why, by_its_process=False)
        yield job


def finish_check(*, job: ReplayImport) -> None:
    """Everything was read: a person decides, unless there is nothing to decide."""
    if job.num_new:
        job.move(ImportStatus.CHECKED, heartbeat_at=None, message="")
    elif job.num_known:
        job.end(ImportStatus.FINISHED, "Everything in it that can be read is here already.")
    else:
        job.fail("No line of it can be read.")


@transaction.atomic
def finish_import(*, job: ReplayImport) -> None:
    """Everything that was new is stored."""
    came_meanwhile = job.num_new - job.num_stored
    message = f"{came_meanwhile} came here another way since the check." if came_meanwhile else ""
    if job.end(ImportStatus.FINISHED, message):
        detail = {"entries": job.num_stored, "known": job.num_known, "bad": job.num_bad}
        log_action(AuditAction.IMPORTED, person=job.owner, team=job.team_id, kind="entry", **detail)
