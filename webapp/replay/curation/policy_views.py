"""Admission policies tried on the buffer, saved as versions, and snapshots taken with them."""

from typing import Any

from django.contrib import messages
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from webapp.accounts.access import MemberRequest, member
from webapp.accounts.form_tokens import once_per_form
from webapp.accounts.models import Role
from webapp.lib.request_values import BadValue, decimal_number, whole_number
from webapp.replay.access import get_policy
from webapp.replay.curation.dry_run import dry_run
from webapp.replay.queries.rules import Rules
from webapp.replay.services.snapshots import pins_of, save_policy, snapshots_of, take_snapshot

WHOLE = ("max_per_task", "max_per_cluster", "max_age")
DECIMAL = ("min_ratio", "min_reward")


@require_safe
def policies(request: MemberRequest) -> HttpResponse:
    """The rules of the URL, or of a saved version, with what they would let in."""
    team = member(request).team
    saved = list(team.admission_policies.select_related("owner")[:50])
    asked = request.GET.get("policy", "")
    chosen = next((one for one in saved if str(one.pk) == asked), None)
    if asked and chosen is None:
        chosen = get_policy(team, asked)
    problem = ""
    try:
        rules = Rules.read(chosen.rules) if chosen else read_rules(request.GET)
    except BadValue as error:
        rules, problem = Rules(), str(error)
    snapshots = snapshots_of(team)
    pins = pins_of(team) if snapshots else {}
    ctx = {
        "chosen": chosen,
        "rules": rules,
        "problem": problem,
        "found": dry_run(team, rules),
        "scanners": [str(row) for row in team.scanners.only("name", "version", "team")],
        "policies": [(policy, Rules.read(policy.rules).words()) for policy in saved],
        "snapshots": [(one, pins.get(one.pk, [])) for one in snapshots],
    }
    return render(request, "replay/policies.html", ctx, status=400 if problem else 200)


def read_rules(values: QueryDict) -> Rules:
    """The rules of a form; empty fields are no rules. Raises BadValue."""
    found: dict[str, Any] = {"only_gold": bool(values.get("only_gold"))}
    found["without"] = [name for name in values.getlist("without") if name]
    for name in WHOLE:
        if text := values.get(name, "").strip():
            found[name] = whole_number(text, name)
    for name in DECIMAL:
        if text := values.get(name, "").strip():
            found[name] = decimal_number(text, name)
    return Rules.read(found)


@require_POST
@once_per_form
def save(request: MemberRequest) -> HttpResponse:
    """Keep the form's rules as the next version of a name."""
    team = member(request, Role.ANNOTATOR).team
    try:
        saved = save_policy(
            team=team,
            user=request.user,
            name=request.POST.get("name", "").strip(),
            rules=read_rules(request.POST),
            note=request.POST.get("note", ""),
        )
    except BadValue as problem:
        messages.error(request, str(problem))
        return redirect("replay-policies")
    messages.success(request, f"Saved as {saved}.")
    return redirect(f"{reverse('replay-policies')}?policy={saved.pk}")


@require_POST
@once_per_form
def take(request: MemberRequest) -> HttpResponse:
    """Keep what a saved version lets in now."""
    team = member(request, Role.ANNOTATOR).team
    policy = get_policy(team, request.POST.get("policy", ""))
    try:
        snapshot = take_snapshot(policy=policy, user=request.user, name=request.POST.get("name", ""))
    except BadValue as problem:
        messages.error(request, str(problem))
    else:
        words = f"{snapshot.num_entries} entr{'y' if snapshot.num_entries == 1 else 'ies'}"
        messages.success(
            request, f"Snapshot {snapshot.pk} keeps {words}; launch with replay.snapshot: {snapshot.pk}."
        )
    return redirect(f"{reverse('replay-policies')}?policy={policy.pk}")
