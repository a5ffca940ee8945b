"""/reports/ID/links: links that show a report without an account."""

from datetime import datetime
from typing import Any, Literal

from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from ninja import Field, Router, Schema, Status

from webapp.accounts.access import MemberRequest
from webapp.accounts.models import Role
from webapp.reports.access import get_report, get_version
from webapp.reports.models import ReportLink
from webapp.reports.services import links
from webapp.reports.services.links import link_url

router = Router(tags=["reports"])


class LinkIn(Schema):
    """How long it works."""

    days: Literal[1, 7, 30, 90] = 7


class LinkOut(Schema):
    """A link to one version."""

    id: int
    version: int = Field(alias="version.number")
    url: str
    """"" once it shows nothing."""
    expires_at: datetime
    revoked_at: datetime | None
    num_opened: int


@router.get("/{int:pk}/links", response=list[LinkOut], operation_id="list_report_links")
def list_links(request: MemberRequest, pk: int) -> Any:
    """Links of all its versions, for those who may make them."""
    report = get_report(request, pk, Role.OPERATOR)
    rows = ReportLink.objects.filter(version__report=report).select_related("version").order_by("-pk")
    return [_shown(request, row) for row in rows]


@router.post(
    "/{int:pk}/versions/{int:number}/links", response={201: LinkOut}, operation_id="make_report_link"
)
def make_link(request: MemberRequest, pk: int, number: int, body: LinkIn) -> Any:
    """A link to this version for people without an account."""
    version = get_version(request, pk, number, Role.OPERATOR)
    link = links.make_link(version=version, user=request.user, days=body.days)
    return Status(201, _shown(request, link))


@router.delete("/{int:pk}/links/{int:link_pk}", response={204: None}, operation_id="revoke_report_link")
def revoke(request: MemberRequest, pk: int, link_pk: int) -> Any:
    """It shows nothing from now on."""
    report = get_report(request, pk, Role.OPERATOR)
    links.revoke_link(
        link=get_object_or_404(ReportLink, pk=link_pk, version__report=report), user=request.user
    )
    return Status(204, None)


def _shown(request: HttpRequest, link: ReportLink) -> dict[str, Any]:
    return {
        "id": link.pk,
        "version.number": link.version.number,
        "url": link_url(request, link),
        "expires_at": link.expires_at,
        "revoked_at": link.revoked_at,
        "num_opened": link.num_opened,
    }
