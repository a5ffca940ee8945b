"""The one way in which views reach a report."""

from django.http import HttpRequest
from django.shortcuts import get_object_or_404

from webapp.accounts.access import owned_row
from webapp.accounts.models import Role
from webapp.reports.models import Report, ReportVersion


def get_report(request: HttpRequest, pk: int, role: Role = Role.VIEWER) -> Report:
    """The report; 404 for strangers, 403 below `role`."""
    return owned_row(request, Report, pk, role)


def get_version(request: HttpRequest, pk: int, number: int, role: Role = Role.VIEWER) -> ReportVersion:
    """One of its versions with the report loaded."""
    report = get_report(request, pk, role)
    return get_object_or_404(report.versions.select_related("report", "owner"), number=number)
