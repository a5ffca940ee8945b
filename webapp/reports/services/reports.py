"""Write a version of a report, and delete a report with its pictures and links."""

from dataclasses import asdict

from django.contrib.auth.models import User
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.db import transaction

from webapp.accounts.models import AuditAction, Team
from webapp.accounts.services.audit_log import log_action
from webapp.lib.request_values import BadValue, check_text
from webapp.reports.frozen_content import Choices, frozen, picture_path, pictures_of
from webapp.reports.models import Report, ReportVersion
from webapp.trajectories.frame_files import read_frame


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


MAX_TITLE, MAX_TEXT = 160, 60_000
MAX_VERSIONS = 200


@transaction.atomic
def write_version(
    *, team: Team, user: User, title: str, text: str, choices: Choices, report: Report | None = None
) -> ReportVersion:
    """Freeze a new version, of a new report without `report`. Raises BadValue naming the field."""
    title = _checked(title, "title", MAX_TITLE).strip()
    if not title:
        raise BadValue("title", "a report needs a title")
    text = _checked(text, "text", MAX_TEXT)
    content = frozen(team, choices)
    if report is None:
        report = Report.objects.create(team=team, title=title)
    report = Report.objects.select_for_update().get(pk=report.pk)
    number = report.versions.count() + 1
    if number > MAX_VERSIONS:
        raise BadValue("title", f"this report has {MAX_VERSIONS} versions; start another one")
    Report.objects.filter(pk=report.pk).update(title=title)
    version = ReportVersion.objects.create(
        report=report, number=number, title=title, text=text, owner=user,
        choices=asdict(choices), content=content,
    )  # fmt: skip
    _copy_pictures(version)
    return version


def _copy_pictures(version: ReportVersion) -> None:
    """The originals may go with their trajectories; one that is gone already is left out."""
    for sha256 in pictures_of(version.content):
        name = picture_path(version, sha256)
        try:
            body = read_frame(sha256, "jpg")
        except FileNotFoundError:
            continue
        default_storage.save(name, ContentFile(body))


def _checked(text: str, field_name: str, limit: int) -> str:
    check_text(text, field_name)
    if len(text) > limit:
        raise BadValue(field_name, f"at most {limit} characters, this has {len(text)}")
    return text
