"""The page of two-step sign-in: turn it on with an authenticator app, turn it off with the password."""

from base64 import b32encode

import segno
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from webapp.accounts.access import MemberRequest, current_membership
from webapp.accounts.two_step import services

CODES_KEY = "recovery_codes"


@require_safe
def show(request: MemberRequest) -> HttpResponse:
    """How it stands; the QR code of a new secret while it is off."""
    _require_password_account(request)
    request.membership = current_membership(request)  # type: ignore[assignment]
    ctx = {
        "is_on": services.is_on(request.user),
        "codes": request.session.pop(CODES_KEY, []),
    }
    if not ctx["is_on"]:
        app = services.app_to_confirm(request.user)
        ctx["secret"] = b32encode(app.bin_key).decode()
        ctx["picture"] = segno.make(app.config_url).svg_data_uri(scale=5, light="white")
    return render(request, "accounts/two_step.html", ctx)


@require_POST
def turn_on(request: MemberRequest) -> HttpResponse:
    """Ask for codes from now on; the recovery codes are shown once."""
    _require_password_account(request)
    if codes := services.turn_on(user=request.user, code=request.POST.get("code", "").strip()):
        request.session[CODES_KEY] = codes
        messages.success(request, "Two-step sign-in is on.")
    else:
        messages.error(
            request, "code: not the one that the app shows now; wait for the next one and try again."
        )
    return redirect("two-step-show")


@require_POST
def turn_off(request: MemberRequest) -> HttpResponse:
    """Ask for the password alone again; needs the password."""
    _require_password_account(request)
    if request.user.check_password(request.POST.get("password", "")):
        services.turn_off(user=request.user)
        messages.success(request, "Two-step sign-in is off.")
    else:
        messages.error(request, "password: it is wrong; two-step sign-in stays on.")
    return redirect("two-step-show")


def _require_password_account(request: MemberRequest) -> None:
    if not request.user.has_usable_password():
        raise PermissionDenied("You sign in at your provider, which has its own second step.")
