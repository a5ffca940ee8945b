"""Scanners, one scanner with its findings and its agreement, and scans."""

from typing import Any

from django.contrib import messages
from django.db.models import Count, Q, QuerySet
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from webapp.accounts.access import MemberRequest, member
from webapp.accounts.form_tokens import once_per_form
from webapp.accounts.models import Role, Team
from webapp.lib.keyset_pages import paginate
from webapp.lib.request_values import BadValue, whole_number
from webapp.live.event_publishing import last_seq
from webapp.rewards_lab.slices import slice_choices
from webapp.scanners.access import get_scan, get_scanner
from webapp.scanners.agreement import with_marks, with_verdicts
from webapp.scanners.definition_schemas import read_definition
from webapp.scanners.kinds.contract import Asked
from webapp.scanners.models import Finding, Outcome, Scan, ScanStatus
from webapp.scanners.preview import preview
from webapp.scanners.queries.scanners import known_scanners
from webapp.scanners.scanner_form import choices, definition_rows, form_values, typed_definition, typed_values
from webapp.scanners.services.scanners import save_scanner
from webapp.scanners.services.scans import cancel_scan, start_scan

MAX_SCANS = 20
LIVE_MARGIN = 1000
"""Trajectories that a live scan may read beyond those that are there."""


@require_safe
def scanner_list(request: MemberRequest) -> HttpResponse:
    """Every scanner of the team with what it found and how far people agree, and the newest scans."""
    team = member(request).team
    known = known_scanners(team)
    rows = [one.row.pk for one in known if one.row]
    counts = counts_of(rows)
    agreed = with_verdicts(rows)
    ctx = {
        "scanners": [
            (one, counts.get(one.row.pk, {}), agreed.get(one.row.pk)) if one.row else (one, {}, None)
            for one in known
        ],
        "scans": _with_slices(team, Scan.objects.filter(team=team).select_related("scanner")),
    }
    return render(request, "scanners/list.html", ctx)


def counts_of(scanners: list[int]) -> dict[int, dict[str, int]]:
    """Scanner -> {"read", "found", "unclear"}; one query."""
    rows = Finding.objects.filter(scanner__in=scanners).order_by().values_list("scanner_id")
    counted = rows.annotate(
        read=Count("id"),
        found=Count("id", filter=Q(outcome=Outcome.FOUND)),
        unclear=Count("id", filter=Q(outcome=Outcome.UNCLEAR)),
    )
    return {pk: {"read": read, "found": found, "unclear": unclear} for pk, read, found, unclear in counted}


@require_safe
def scanner_detail(request: MemberRequest, scanner: str) -> HttpResponse:
    """What it looks for, what it found, how far people agree, and the form of another scan."""
    team = member(request).team
    known = get_scanner(team, scanner)
    found = (
        Finding.objects.filter(scanner=known.row, outcome=Outcome.FOUND)
        if known.row
        else Finding.objects.none()
    )
    found = found.select_related("trajectory__task").defer("trajectory__task__spec")
    page = paginate(found, request.GET, sorts={"newest": "-id"}, default="newest", noun="findings")
    pks = [known.row.pk] if known.row else []
    ctx = {
        "known": known,
        "rows": definition_rows(known.definition),
        "is_model": isinstance(known.definition, Asked),
        "lacks_model": isinstance(known.definition, Asked) and known.definition.lacks_model,
        "counts": counts_of(pks).get(pks[0], {}) if pks else {},
        "verdicts": with_verdicts(pks).get(pks[0]) if pks else None,
        "marks": with_marks(pks[0]) if pks else None,
        "page": page,
        "slices": slice_choices(team.pk),
        "scans": _with_slices(team, known.row.scans.all()) if known.row else [],
    }
    return render(request, "scanners/detail.html", ctx)


@require_safe
def scanner_new(request: MemberRequest) -> HttpResponse:
    """The form, empty or with what another scanner looks for (`?from=`)."""
    team = member(request, Role.OPERATOR).team
    start: dict[str, Any] = {"kind": "text"}
    name = ""
    if key := request.GET.get("from", ""):
        known = get_scanner(team, key)
        start, name = form_values(known.definition), known.key.rpartition(".v")[0]
    return _form(request, start, name, "")


def _form(
    request: MemberRequest, start: dict[str, Any], name: str, note: str, status: int = 200
) -> HttpResponse:
    ctx = {"start": start, "name": name, "note": note, **choices()}
    return render(request, "scanners/new.html", ctx, status=status)


@require_POST
@once_per_form
def scanner_save(request: MemberRequest) -> HttpResponse:
    """Keep the form as the next version of its name; shown again as it was when it cannot be kept."""
    team = member(request, Role.OPERATOR).team
    name, note = request.POST.get("name", "").strip(), request.POST.get("note", "").strip()
    try:
        row = save_scanner(
            team=team, user=request.user, name=name, definition=typed_definition(request.POST), note=note
        )
    except BadValue as refused:
        messages.error(request, f"Nothing was saved: {refused}.")
        return _form(request, typed_values(request.POST), name, note, status=422)
    messages.success(request, f"Saved as {row}.")
    return redirect("scanner-detail", str(row))


@require_POST
def scan_preview(request: MemberRequest, scanner: str) -> HttpResponse:
    """Number and cost of a scan, with the button that starts it; nothing is sent to a model."""
    team = member(request, Role.OPERATOR).team
    known = get_scanner(team, scanner)
    chosen, is_live = request.POST.get("slice", ""), bool(request.POST.get("is_live"))
    try:
        found = preview(team, known, chosen)
    except BadValue as refused:
        return HttpResponse(str(refused), status=422, content_type="text/plain; charset=utf-8")
    ctx = {
        "known": known,
        "slice": chosen,
        "is_live": is_live,
        "found": found,
        "max_read": found.num_unread + (LIVE_MARGIN if is_live else 0),
    }
    return render(request, "scanners/parts/preview.html", ctx)


@require_POST
@once_per_form
def scan_start(request: MemberRequest, scanner: str) -> HttpResponse:
    """Queue it for as many trajectories as were previewed."""
    team = member(request, Role.OPERATOR).team
    known = get_scanner(team, scanner)
    try:
        scan = start_scan(
            team=team,
            user=request.user,
            known=known,
            slice_key=request.POST.get("slice", ""),
            is_live=bool(request.POST.get("is_live")),
            max_read=whole_number(request.POST.get("max_read", ""), "max_read"),
        )
    except BadValue as refused:
        messages.error(request, f"Nothing was started: {refused}.")
        return redirect("scanner-detail", scanner)
    return redirect("scan-detail", scan.pk)


@require_safe
def scan_detail(request: MemberRequest, pk: int) -> HttpResponse:
    """How far it is, and what it found; updates by the scan's stream."""
    cursor = last_seq(f"scan.{pk}")
    scan = get_scan(request, pk)
    return render(request, "scanners/scan.html", {"cursor": cursor, **_scan_context(scan)})


@require_safe
def scan_part(request: MemberRequest, pk: int) -> HttpResponse:
    """All but the heading, as live updates ask for it."""
    return render(request, "scanners/parts/scan.html", _scan_context(get_scan(request, pk)))


def _with_slices(team: Team, scans: QuerySet[Scan]) -> list[tuple[Scan, str]]:
    """(scan, what people call its slice)"""
    names = dict(slice_choices(team.pk))
    return [(scan, names.get(scan.slice, scan.slice)) for scan in scans[:MAX_SCANS]]


def _scan_context(scan: Scan) -> dict[str, Any]:
    status = ScanStatus(scan.status)
    found = scan.findings.filter(outcome=Outcome.FOUND).select_related("trajectory__task")
    return {
        "scan": scan,
        "slice_name": dict(slice_choices(scan.team_id)).get(scan.slice, scan.slice),
        "is_model": isinstance(read_definition(scan.scanner.definition), Asked),
        "findings": list(found.defer("trajectory__task__spec").order_by("-id")[:MAX_SCANS]),
        "has_ended": status.is_final(),
    }


@require_POST
def scan_cancel(request: MemberRequest, pk: int) -> HttpResponse:
    """Read nothing more."""
    scan = get_scan(request, pk, Role.OPERATOR)
    if not cancel_scan(scan=scan, user=request.user):
        scan.refresh_from_db()
        messages.warning(request, f"Nothing was cancelled: this scan is {scan.status}.")
    return redirect("scan-detail", pk)
