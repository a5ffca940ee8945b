"""To the provider, and back from it."""

import logging
from typing import Any

from django.contrib import messages
from django.contrib.auth import login
from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_safe

from webapp.accounts.identity_providers.oidc import provider
from webapp.accounts.identity_providers.oidc.services import account_of
from webapp.accounts.models import AuditAction
from webapp.accounts.services.audit_log import log_action

logger = logging.getLogger(__name__)
BACKEND = "webapp.accounts.member_backend.MemberBackend"
NEXT_KEY = "single_sign_on_next"


@login_not_required
@require_safe
def start(request: HttpRequest) -> HttpResponse:
    """Send the person to the provider; `next` is where they want to go afterwards."""
    _require_configured()
    wanted = request.GET.get("next", "")
    is_ours = url_has_allowed_host_and_scheme(wanted, {request.get_host()}, require_https=request.is_secure())
    request.session[NEXT_KEY] = wanted if is_ours else "/"
    try:
        return provider.send_to_provider(request, request.build_absolute_uri(reverse("sso-callback")))
    except provider.SignInRefused as refused:
        return _refuse(request, refused)


@login_not_required
@require_safe
def come_back(request: HttpRequest) -> HttpResponse:
    """The provider's answer: sign the person in."""
    _require_configured()
    try:
        user = account_of(provider.claims_of_answer(request))
    except provider.SignInRefused as refused:
        return _refuse(request, refused)
    wanted = request.session.pop(NEXT_KEY, "/")
    login(request, user, backend=BACKEND)
    return HttpResponseRedirect(wanted)


def _require_configured() -> None:
    if not provider.is_configured():
        raise Http404("Single sign-on is not set up here.")


def _refuse(request: HttpRequest, refused: provider.SignInRefused) -> HttpResponse:
    """Back to the sign-in page, which says why."""
    logger.warning("single sign-on failed: %s", refused)
    address = str(request.META.get("REMOTE_ADDR") or "")
    detail: dict[str, Any] = {"how": "single sign-on", "address": address, "why": str(refused)[:300]}
    log_action(AuditAction.SIGN_IN_FAILED, person="unknown", kind="person", **detail)
    messages.error(request, str(refused))
    return redirect("login")
