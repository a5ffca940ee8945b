"""Deleting a report: its versions, their pictures and all links to it."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.core.files.storage import default_storage
from django.db import transaction

from webapp.accounts.models import AuditAction
from webapp.accounts.services.audit_log import log_action
from webapp.reports.freeze import picture_path, pictures_of
from webapp.reports.models import Report


def delete_report(*, report: Report, user: User) -> None:
    """Its links show nothing from then on; what it was made of stays."""
    with transaction.atomic():
        versions = list(report.versions.all())
        paths = [picture_path(one, sha256) for one in versions for sha256 in pictures_of(one.content)]
        log_action(
            AuditAction.DELETED, person=user, team=report.team_id, kind="report", object_id=report.pk,
            title=report.title, versions=len(versions),
        )  # fmt: skip
        report.delete()
        transaction.on_commit(lambda: _remove(paths))


def _remove(paths: list[str]) -> None:
    for path in paths:
        default_storage.delete(path)
