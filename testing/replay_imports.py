"""Imports of replay entries without the dispatcher: what its process does, in this one."""

from collections.abc import Iterable

from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile

from webapp.accounts.models import Team
from webapp.dispatcher.work_kinds import kinds
from webapp.experiments.models import TaskSet
from webapp.replay.models import ReplayEntry, ReplayImport
from webapp.replay.services.imports import approve_import, request_import


class ImportRefused(ValueError):
    """Raised for bad lines, with their "line N: field: what is wrong"."""


def check_lines(
    *, lines: Iterable[str], team: Team, task_set: TaskSet, user: User, keep_labels: bool = False
) -> ReplayImport:
    """An import whose check has ended."""
    upload = SimpleUploadedFile("replay.jsonl", "\n".join(lines).encode("utf-8", "surrogatepass"))
    job = request_import(team=team, user=user, task_set=task_set, upload=upload, keep_labels=keep_labels)
    kinds["import"].run(job.pk)
    job.refresh_from_db()
    return job


def import_lines(
    *, lines: Iterable[str], team: Team, task_set: TaskSet, user: User, keep_labels: bool = False
) -> list[ReplayEntry]:
    """Check, and store what is new. Raises ImportRefused when a line is bad."""
    before = set(ReplayEntry.objects.values_list("pk", flat=True))
    job = check_lines(lines=lines, team=team, task_set=task_set, user=user, keep_labels=keep_labels)
    if job.problems:
        raise ImportRefused("\n".join(f"line {number}: {problem}" for number, problem in job.problems))
    if approve_import(job=job, user=user):
        kinds["import"].run(job.pk)
    return list(ReplayEntry.objects.exclude(pk__in=before).order_by("pk"))
