"""The first page, whole or its live part, and what Ctrl+K finds, as JSON."""

from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from webapp.accounts.access import MemberRequest, current_membership, member
from webapp.accounts.models import Role
from webapp.home.finds import found_for
from webapp.home.guide import guide_of
from webapp.home.needs import needs_of, runs_of
from webapp.live.event_publishing import last_seq

MAX_QUERY = 120


@require_safe
def show_home(request: MemberRequest) -> HttpResponse:
    """What needs a person, what runs, and how to begin."""
    held = member(request)
    cursor = last_seq("queue")
    guide = guide_of(held.team, request.user, may_launch=Role(held.role).includes(Role.OPERATOR))
    return render(request, "home/home.html", {**_needs(request), "guide": guide, "cursor": cursor})


@require_safe
def show_needs(request: MemberRequest) -> HttpResponse:
    """The same without its frame, for live updates."""
    return render(request, "home/parts/needs.html", _needs(request))


def _needs(request: MemberRequest) -> dict[str, Any]:
    team = member(request).team
    rows = runs_of(team)
    return {"needs": needs_of(team, request.user, rows.ended), "runs": rows}


@require_safe
def find_anything(request: HttpRequest) -> JsonResponse:
    """What fits `q`: rows by number or name, and what may be done with them; nothing without a team."""
    text = request.GET.get("q", "").strip()[:MAX_QUERY]
    held = current_membership(request)
    return JsonResponse({"found": found_for(held, text) if held and text else []})
