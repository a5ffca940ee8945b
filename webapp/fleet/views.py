"""The fleet page, one desktop's page, and what they fetch."""

from collections.abc import Iterable
from typing import Any

from django.core.files.storage import default_storage
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from webapp.accounts.access import MemberRequest, member
from webapp.accounts.models import Role
from webapp.accounts.services.audit_log import log_viewing
from webapp.fleet import history_charts
from webapp.fleet.access import desktop_verbs, operates_fleet
from webapp.fleet.display_rows import DesktopRow
from webapp.fleet.models import BootFailure, Desktop, DesktopPhase
from webapp.fleet.queries import desktops
from webapp.fleet.queries.hosts import host_rows, recent_failures, totals
from webapp.fleet.queries.operations import open_operations, recent_operations
from webapp.fleet.queries.workers import cursor_before, recent_workers
from webapp.lib.request_values import whole_number
from webapp.live.event_publishing import last_seq

VIEWS = ("wall", "table")
MAX_PAGE = 10_000
PICTURES = {b"\x89PNG": "image/png", b"\xff\xd8\xff": "image/jpeg"}


@require_safe
def fleet(request: MemberRequest) -> HttpResponse:
    """Hosts, workers and desktops, what they do, and what operators did."""
    ctx = _context(request)
    _note_viewing(request, ctx["desktops"], kind="fleet", object_id="")
    return render(request, "fleet/fleet.html", ctx)


@require_safe
def fleet_parts(request: HttpRequest) -> HttpResponse:
    """The same without the page around it, for live updates."""
    return render(request, "fleet/parts/fleet.html", _context(request))


@require_safe
def fleet_history(request: HttpRequest) -> JsonResponse:
    """Series for the charts."""
    member(request)
    return JsonResponse(history_charts.charts(request.GET.get("hours", "")))


@require_safe
def desktop(request: MemberRequest, name: str) -> HttpResponse:
    """One desktop: how it is, why, what was done to it."""
    cursor = last_seq("fleet")
    ctx = _desktop_context(request, name)
    _note_viewing(request, [ctx["row"]], kind="desktop", object_id=name)
    return render(request, "fleet/desktop.html", {**ctx, "cursor": cursor})


@require_safe
def desktop_part(request: HttpRequest, name: str) -> HttpResponse:
    """The same without the page around it."""
    return render(request, "fleet/parts/desktop.html", _desktop_context(request, name))


@require_safe
def boot_failure_screen(request: HttpRequest, pk: int) -> HttpResponse:
    """The last picture of a screen that did not come up: no trajectory was on it, any member may look."""
    member(request)
    failure = get_object_or_404(BootFailure, pk=pk)
    if not failure.screenshot or not default_storage.exists(failure.screenshot):
        raise Http404("There is no picture of this screen.")
    with default_storage.open(failure.screenshot) as file:
        content = file.read()
    kind = next((kind for start, kind in PICTURES.items() if content.startswith(start)), None)
    if kind is None:
        raise Http404("The picture of this screen is neither PNG nor JPEG.")
    response = HttpResponse(content, content_type=kind)
    response["X-Content-Type-Options"] = "nosniff"
    return response


def _note_viewing(request: MemberRequest, rows: Iterable[DesktopRow], *, kind: str, object_id: str) -> None:
    """The audit log tells who looks at screens on which trajectories run."""
    if any(row.is_live for row in rows):
        team = member(request).team_id
        log_viewing(person=request.user, team=team, kind=kind, object_id=object_id, how="wall")


def _context(request: HttpRequest) -> dict[str, Any]:
    membership = member(request)
    may_operate = operates_fleet(request, membership)
    filters = {name: request.GET.get(name, "") for name in desktops.FILTERS}
    workers = recent_workers()
    cursor, living = cursor_before(workers), desktops.living_desktops()
    hosts = host_rows(workers, living)
    number = whole_number(request.GET.get("page", "") or "1", "page", low=1, high=MAX_PAGE)
    page = desktops.page_of_desktops(filters, number)
    operations = recent_operations()
    wanted = request.GET.get("view", "")
    return {
        "cursor": cursor,
        "may_operate": may_operate,
        "may_add_hosts": may_operate and Role(membership.role).includes(Role.ADMIN),
        "workers": workers,
        "hosts": hosts,
        "page": page,
        "desktops": desktops.with_trajectories(page.rows, membership.team),
        "num_living": living.count(),
        "totals": totals(workers, hosts, living),
        "operations": operations,
        "under_way": open_operations(operations),
        "failures": recent_failures(hosts),
        "filters": filters,
        "is_filtered": any(value for name, value in filters.items() if name != "sort"),
        "view": wanted if wanted in VIEWS else VIEWS[0],
        "hours": request.GET.get("hours", "1"),
        "windows": list(history_charts.WINDOWS),
        "phases": [*DesktopPhase.choices[:-1], ("failed", "With failures")],
        "host_names": living.names("host"),
        "providers": living.names("provider"),
    }


def _desktop_context(request: HttpRequest, name: str) -> dict[str, Any]:
    membership = member(request)
    row = get_object_or_404(Desktop.objects.select_related("worker"), name=name)
    operations = recent_operations(target=name)
    return {
        "may_operate": bool(desktop_verbs(request, membership, row)),
        "row": desktops.with_trajectories([row], membership.team)[0],
        "operations": operations,
        "under_way": open_operations(operations),
    }
