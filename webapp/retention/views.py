"""The page Storage: what a team keeps, its rules, and what the next run removes."""

from django.contrib import messages
from django.core.exceptions import NON_FIELD_ERRORS
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from webapp.accounts.access import MemberRequest, member, owned_row
from webapp.accounts.models import Role
from webapp.experiments.models import Experiment
from webapp.retention.forms import RuleForm
from webapp.retention.models import RetentionRule
from webapp.retention.queries.usage import summaries, usage_of
from webapp.retention.services import rules
from webapp.retention.services.pruning import plan

EXPERIMENTS_OFFERED = 200
COUNTED_FOR_S = 0.5
"""A rule's first run may remove a hundred thousand screenshots, each asked for in turn."""


@require_safe
def storage(request: MemberRequest) -> HttpResponse:
    """Any member sees it; admins change the rules."""
    held = member(request)
    found = list(held.team.retention_rules.select_related("experiment", "team").order_by("experiment_id"))
    context = {
        "usage": usage_of(held.team),
        "summaries": summaries(found, plan(found), COUNTED_FOR_S),
        "experiments": Experiment.objects.filter(team=held.team)
        .only("name")
        .order_by("-id")[:EXPERIMENTS_OFFERED],
    }
    return render(request, "retention/storage.html", context)


@require_POST
def save_rule(request: MemberRequest) -> HttpResponse:
    """Make a rule or change it."""
    form = RuleForm(request.POST, team=member(request, Role.ADMIN).team)
    if form.is_valid():
        form.store(request.user)
        messages.success(request, "Rule saved; the dispatcher follows it within minutes.")
    else:
        for field, texts in form.errors.items():  # those of the whole form name their fields themselves
            name = "" if field == NON_FIELD_ERRORS else f"{field}: "
            messages.error(request, f"{name}{' '.join(map(str, texts))}")
    return redirect("storage-show")


@require_POST
def delete_rule(request: MemberRequest, pk: int) -> HttpResponse:
    """Without a rule everything stays."""
    rules.delete_rule(rule=owned_row(request, RetentionRule, pk, Role.ADMIN, "team"), by=request.user)
    messages.success(request, "Rule deleted.")
    return redirect("storage-show")
