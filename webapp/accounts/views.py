"""Sign-in, the team's members, the own profile."""

from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth import views as auth_views
from django.contrib.auth.forms import PasswordChangeForm
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect, render
from django.urls import reverse_lazy
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST, require_safe

from webapp.accounts.access import (
    TEAM_SESSION_KEY,
    MemberRequest,
    current_membership,
    member,
    memberships,
    team_member,
)
from webapp.accounts.form_tokens import once_per_form
from webapp.accounts.forms import MemberForm, RoleForm, TokenForm
from webapp.accounts.identity_providers.registry import IDENTITY_PROVIDERS
from webapp.accounts.models import Role, Scope
from webapp.accounts.services import members, tokens
from webapp.accounts.two_step.sign_in_form import SignInForm
from webapp.lib.error_pages import answer_error


class LoginView(auth_views.LoginView):
    """The sign-in page; a person who is signed in already goes on to the page they wanted."""

    template_name = "accounts/login.html"
    redirect_authenticated_user = True
    authentication_form = SignInForm

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(**kwargs) | {
            "providers": [(one.start, one.label()) for one in IDENTITY_PROVIDERS if one.label()]
        }


def locked_out(request: HttpRequest, credentials: dict[str, Any], *args: Any, **kwargs: Any) -> HttpResponse:
    """The answer after too many wrong passwords for one name from one address."""
    message = "Too many sign-ins with a wrong password from here. Wait ten minutes, then try again."
    return answer_error(request, 429, "locked_out", message)


class PasswordView(auth_views.PasswordChangeView):
    template_name = "accounts/password.html"
    success_url = reverse_lazy("profile-show")

    def form_valid(self, form: PasswordChangeForm) -> HttpResponse:
        messages.success(self.request, "Password changed; API tokens made before have ended.")
        with transaction.atomic():
            members.record_own_password(form.user)
            return super().form_valid(form)


@require_safe
def show_profile(request: MemberRequest) -> HttpResponse:
    """Own teams, password and API tokens; also for a user who is in no team yet."""
    request.membership = current_membership(request)  # type: ignore[assignment]
    context = {
        "mine": memberships(request),
        "tokens": request.user.api_tokens.order_by("-id"),
        "now": timezone.now(),
        "scopes": Scope.choices,
        "days": tokens.DAYS,
        "default_days": tokens.DEFAULT_DAYS,
        "new_token": request.session.pop("new_token", ""),
    }
    return render(request, "accounts/profile.html", context)


@require_POST
@once_per_form
def create_token(request: MemberRequest) -> HttpResponse:
    """A new API token, shown once on the profile page."""
    form = TokenForm(request.POST)
    if form.is_valid():
        request.session["new_token"] = tokens.create_token(
            user=request.user,
            name=form.cleaned_data["name"],
            scope=Scope(form.cleaned_data["scope"]),
            days=form.cleaned_data["days"],
        )
        return redirect("profile-show")
    return _tell_errors(request, form, back="profile-show")


@require_POST
def revoke_token(request: MemberRequest, pk: int) -> HttpResponse:
    """Delete an own API token."""
    if not tokens.revoke_token(user=request.user, pk=pk):
        raise Http404("No such token of yours.")
    messages.success(request, "Token revoked.")
    return redirect("profile-show")


@require_POST
def switch_team(request: MemberRequest, pk: int) -> HttpResponse:
    """Make another of the own teams the current one."""
    if pk not in {held.team_id for held in memberships(request)}:
        raise Http404("You are in no such team.")
    request.session[TEAM_SESSION_KEY] = pk
    wanted = request.POST.get("next", "/")
    is_ours = url_has_allowed_host_and_scheme(wanted, {request.get_host()}, require_https=request.is_secure())
    return HttpResponseRedirect(wanted if is_ours else "/")  # `redirect` would look for a view called so


@require_safe
def show_team(request: MemberRequest) -> HttpResponse:
    """Members and roles of the current team; admins can change them."""
    held = member(request)
    rows = held.team.memberships.select_related("user").order_by("user__username")
    context = {
        "team": held.team,
        "members": rows,
        "roles": Role.choices,
        "new_login": request.session.pop("new_login", None),
    }
    return render(request, "accounts/team.html", context)


@require_POST
@once_per_form
def add_member(request: MemberRequest) -> HttpResponse:
    """Put a person into the current team."""
    team = member(request, Role.ADMIN).team
    form = MemberForm(request.POST)
    if not form.is_valid():
        return _tell_errors(request, form)
    values = form.cleaned_data
    try:
        added, password = members.add_member(
            team=team, username=values["username"], role=Role(values["role"]), by=request.user
        )
    except members.MemberError as error:
        return _refuse(request, error)
    messages.success(request, f"{added.user} is {added.get_role_display()} in {team}.")
    if password:
        request.session["new_login"] = [added.user.get_username(), password]
    return redirect("team-show")


@require_POST
def change_role(request: MemberRequest, pk: int) -> HttpResponse:
    """Give a member of the current team another role."""
    changed = team_member(request, pk)
    form = RoleForm(request.POST)
    if not form.is_valid():
        return _tell_errors(request, form)
    role = Role(form.cleaned_data["role"])
    try:
        members.change_role(membership=changed, role=role, by=request.user)
    except members.MemberError as error:
        return _refuse(request, error)
    messages.success(request, f"{changed.user} is now {role.label}.")
    return redirect("team-show")


@require_POST
def remove_member(request: MemberRequest, pk: int) -> HttpResponse:
    """Take a person out of the current team."""
    removed = team_member(request, pk)
    try:
        members.remove_member(membership=removed, by=request.user)
    except members.MemberError as error:
        return _refuse(request, error)
    messages.success(request, f"{removed.user} is no longer in {removed.team}.")
    return redirect("team-show")


@require_POST
def reset_password(request: MemberRequest, pk: int) -> HttpResponse:
    """Generate a new password for a member, shown once."""
    chosen = team_member(request, pk)
    try:
        password = members.reset_password(membership=chosen, by=request.user)
    except members.MemberError as error:
        return _refuse(request, error)
    request.session["new_login"] = [chosen.user.get_username(), password]
    return redirect("team-show")


def _tell_errors(request: MemberRequest, form: forms.Form, back: str = "team-show") -> HttpResponse:
    for field, errors in form.errors.items():
        messages.error(request, f"{field}: {' '.join(str(error) for error in errors)}")
    return redirect(back)


def _refuse(request: MemberRequest, error: members.MemberError) -> HttpResponse:
    messages.error(request, str(error))
    return redirect("team-show")
