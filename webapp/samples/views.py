"""The buttons: look at samples, delete them."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from webapp.accounts.access import MemberRequest, member
from webapp.accounts.form_tokens import once_per_form
from webapp.accounts.models import Role
from webapp.samples.services.deletion import delete_samples
from webapp.samples.services.samples import seed


@require_POST
@once_per_form
def seed_samples(request: MemberRequest) -> HttpResponse:
    """Make them, and show the one that finished."""
    found = seed(team=member(request, Role.OPERATOR).team, user=request.user)
    return redirect("experiment-detail", found.finished.pk)


@require_POST
def remove_samples(request: MemberRequest) -> HttpResponse:
    if delete_samples(team=member(request, Role.OPERATOR).team, user=request.user):
        messages.success(request, "The samples are deleted.")
    return redirect("experiment-list")
