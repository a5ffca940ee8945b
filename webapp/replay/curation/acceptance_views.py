"""The team's acceptance rule: set from the page of clusters, and stopped there."""

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from webapp.accounts.access import MemberRequest, member
from webapp.accounts.models import Role, Team
from webapp.lib.request_values import decimal_number, whole_number
from webapp.replay.models import AcceptanceRule
from webapp.replay.services.acceptance import PIECE, apply_rule, audit_of, set_rule, stop_rule
from webapp.replay.services.clusters import MAX_KEEP


def acceptance_context(team: Team) -> dict[str, Any]:
    """What templates/replay/parts/acceptance.html shows."""
    rule = AcceptanceRule.objects.filter(team=team).first()
    return {
        "rule": rule or AcceptanceRule(team=team),
        "is_set": rule is not None,
        "audit": audit_of(rule) if rule else None,
        "rule_scanners": [str(row) for row in team.scanners.only("name", "version", "team")],
    }


@require_POST
def save(request: MemberRequest) -> HttpResponse:
    """Another rule, applied at once; with `stop` the one that is there ends."""
    team, form = member(request, Role.ANNOTATOR).team, request.POST
    if form.get("stop"):
        for rule in AcceptanceRule.objects.filter(team=team):
            stop_rule(rule=rule, why=f"{request.user.get_username()} stopped it.")
        return redirect("replay-clusters")
    known = {str(row) for row in team.scanners.only("name", "version", "team")}
    rule = set_rule(
        team=team,
        user=request.user,
        min_score=decimal_number(form.get("min_score", ""), "min_score", low=0, high=1),
        keep=whole_number(form.get("keep", ""), "keep", low=1, high=MAX_KEEP),
        without=sorted(known.intersection(form.getlist("without"))),
        audit_share=decimal_number(form.get("audit", ""), "audit", low=1, high=100) / 100,
        max_error=decimal_number(form.get("limit", ""), "limit", low=0, high=100) / 100,
    )
    done = apply_rule(rule, at_most=PIECE)
    messages.success(
        request,
        f"{done.accepted:,} accepted, {done.rejected:,} rejected as near-duplicates, "
        f"{done.sampled:,} left in the inbox for people to judge; what is left follows within minutes.",
    )
    return redirect("replay-clusters")
