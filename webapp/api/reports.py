"""/reports: write, read and delete frozen reports."""

from datetime import datetime
from typing import Any

from django.db.models import Count, Max
from ninja import Field, Router, Schema, Status

from webapp.accounts.access import MemberRequest, member
from webapp.accounts.models import Role
from webapp.api.paging import Page, page_of
from webapp.reports.access import get_report, get_version
from webapp.reports.frozen_content import Choices
from webapp.reports.models import Report
from webapp.reports.services.reports import delete_report, write_version

router = Router(tags=["reports"])


class ReportRow(Schema):
    """A report in the list."""

    id: int
    title: str
    num_versions: int
    written_at: datetime | None
    """When its newest version was frozen."""


class ReportPage(Page[ReportRow]):
    """Newest first; `next` is the `after` of the next page."""


class ReportIn(Schema):
    """What to freeze, as the form asks it."""

    title: str
    text: str = ""
    """Markdown."""
    experiments: list[int]
    charts: list[str] = []
    """Titles of charts."""
    with_tasks: bool = False
    with_config: bool = False
    trajectories: list[int] = []


class VersionOut(Schema):
    """A frozen version."""

    report: int = Field(alias="report_id")
    number: int
    title: str
    text: str
    author: str | None = Field(None, alias="owner.username")
    created_at: datetime
    content: dict[str, Any]
    """Charts, tables and trajectories as they were."""


@router.get("", response=ReportPage, operation_id="list_reports")
def list_reports(request: MemberRequest, after: str = "", limit: int = 50) -> Any:
    """Reports of the current team, newest first."""
    rows = Report.objects.filter(team=member(request).team)
    rows = rows.annotate(num_versions=Count("versions"), written_at=Max("versions__created_at"))
    return page_of(rows, after, limit)


@router.post("", response={201: VersionOut}, operation_id="write_report")
def write_report(request: MemberRequest, body: ReportIn) -> Any:
    """Freeze the first version of a new report."""
    return _write(request, body, None)


@router.post("/{int:pk}/versions", response={201: VersionOut}, operation_id="write_report_version")
def write_report_version(request: MemberRequest, pk: int, body: ReportIn) -> Any:
    """Freeze another version; older ones stay as they are."""
    return _write(request, body, get_report(request, pk, Role.OPERATOR))


@router.get("/{int:pk}/versions/{int:number}", response=VersionOut, operation_id="show_report_version")
def show_report_version(request: MemberRequest, pk: int, number: int) -> Any:
    """One version with everything that it froze."""
    return get_version(request, pk, number)


@router.delete("/{int:pk}", response={204: None}, operation_id="delete_report")
def delete(request: MemberRequest, pk: int) -> Any:
    """Delete it with all versions, pictures and links."""
    delete_report(report=get_report(request, pk, Role.OPERATOR), user=request.user)
    return Status(204, None)


def _write(request: MemberRequest, body: ReportIn, report: Report | None) -> Any:
    values = body.model_dump()
    title, text = values.pop("title"), values.pop("text")
    version = write_version(
        team=report.team if report else member(request, Role.OPERATOR).team,
        user=request.user,
        title=title,
        text=text,
        choices=Choices(**values),
        report=report,
    )
    return Status(201, version)
