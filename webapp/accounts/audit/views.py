"""The page of the audit log, and its export."""

from django.conf import settings
from django.http import HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from webapp.accounts.access import MemberRequest
from webapp.accounts.audit.export import CONTENT_TYPES, export_lines
from webapp.accounts.audit.filters import AuditFilter, readable_rows, sees_everything
from webapp.accounts.models import AuditAction
from webapp.accounts.services.audit_log import log_action
from webapp.lib.keyset_pages import paginate
from webapp.lib.request_values import BadValue

SORTS = {"newest": "-id", "oldest": "id"}


@require_safe
def audit_log(request: MemberRequest) -> HttpResponse:
    """Who did what, newest first."""
    rows = readable_rows(request)
    chosen = AuditFilter.from_query(request.GET)
    page = paginate(chosen.apply(rows), request.GET, sorts=SORTS, default="newest", noun="entries")
    ctx = {
        "page": page,
        "chosen": chosen,
        "actions": AuditAction.choices,
        "is_everything": sees_everything(request),
        "days": settings.AUDIT_DAYS,
        "formats": list(CONTENT_TYPES),
    }
    return render(request, "accounts/audit.html", ctx)


@require_safe
def export_audit_log(request: MemberRequest) -> HttpResponseBase:
    """The rows of the filter in the URL as a file, `format=csv` or `jsonl`."""
    rows = readable_rows(request)
    file_format = request.GET.get("format", "csv")
    if file_format not in CONTENT_TYPES:
        raise BadValue("format", f"one of {', '.join(CONTENT_TYPES)}")
    chosen = AuditFilter.from_query(request.GET).apply(rows)
    team = None if sees_everything(request) else request.membership.team
    log_action(
        AuditAction.EXPORTED,
        person=request.user,
        team=team,
        kind="audit",
        object_id="log",
        format=file_format,
    )
    response = StreamingHttpResponse(
        export_lines(chosen, file_format), content_type=CONTENT_TYPES[file_format]
    )
    response["Content-Disposition"] = f'attachment; filename="deskhand-audit.{file_format}"'
    return response
