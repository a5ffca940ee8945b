"""The fleet page."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from webapp.fleet import queries
from webapp.lib.access import member
from webapp.live.services import last_seq


@require_safe
def fleet(request: HttpRequest) -> HttpResponse:
    """Workers with their heartbeats, desktops with what they are doing."""
    cursor = last_seq("fleet")
    return render(request, "fleet/fleet.html", {**_context(request), "cursor": cursor})


@require_safe
def fleet_parts(request: HttpRequest) -> HttpResponse:
    """The same without the page around it, for live updates."""
    return render(request, "fleet/parts/fleet.html", _context(request))


def _context(request: HttpRequest) -> dict[str, Any]:
    team = member(request).team
    workers, desktops = queries.workers(), queries.desktops(team)
    return {
        "nav": "fleet",
        "workers": workers,
        "desktops": desktops,
        "totals": queries.totals(workers, desktops),
    }
