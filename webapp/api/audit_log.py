"""/audit: who did what."""

from datetime import datetime
from typing import Any

from ninja import Field, Router, Schema

from webapp.accounts.access import MemberRequest
from webapp.accounts.audit.filters import AuditFilter, readable_rows
from webapp.accounts.models import AuditAction
from webapp.api.paging import Page, page_of

router = Router(tags=["account"])


class AuditRow(Schema):
    """One thing that a person did or saw."""

    id: int
    at: datetime
    person: str = Field(alias="person_name")
    action: AuditAction
    kind: str
    """Of the object: experiment, trajectory, entry, person, token, desktop and so on."""
    object_id: str
    team: str | None = Field(None, alias="team.name")
    detail: dict[str, Any]


class AuditPage(Page[AuditRow]):
    """Newest first; `next` is the `after` of the next page."""


@router.get("", response=AuditPage, operation_id="list_audit")
def list_audit(
    request: MemberRequest,
    person: str = "",
    action: AuditAction | None = None,
    object: str = "",  # its name in the URL
    since: str = "",
    until: str = "",
    after: str = "",
    limit: int = 50,
) -> Any:
    """The audit log: of the current team for its admins, of all for superusers. `object`: "experiment 12"."""
    chosen = AuditFilter.from_query(request.GET)
    return page_of(chosen.apply(readable_rows(request)), after, limit)
