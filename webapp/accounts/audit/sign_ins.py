"""Sign-ins, also failed ones, and sign-outs in the audit log: Django tells of them by its signals."""

from typing import Any

from django.contrib.auth import signals
from django.contrib.auth.models import User
from django.http import HttpRequest

from webapp.accounts.models import AuditAction
from webapp.accounts.services.audit_log import log_action, only_team


def connect() -> None:
    """Listen to Django's signals; called when the applications are loaded."""
    signals.user_logged_in.connect(_signed_in, dispatch_uid="audit")
    signals.user_login_failed.connect(_failed, dispatch_uid="audit")
    signals.user_logged_out.connect(_signed_out, dispatch_uid="audit")


def _signed_in(request: HttpRequest, user: User, **_: Any) -> None:
    _record(AuditAction.SIGNED_IN, request, user)


def _signed_out(request: HttpRequest, user: User | None, **_: Any) -> None:
    if user is not None:
        _record(AuditAction.SIGNED_OUT, request, user)


def _failed(credentials: dict[str, Any], request: HttpRequest | None = None, **_: Any) -> None:
    """A wrong password. A name without an account is not kept: people type passwords into that field."""
    name = credentials.get("username")
    if request is None or not isinstance(name, str) or "\x00" in name:
        return
    user = User.objects.filter(username=name).first()
    if user is None:
        address = _address(request)
        log_action(AuditAction.SIGN_IN_FAILED, person="unknown", kind="person", address=address)
    else:
        _record(AuditAction.SIGN_IN_FAILED, request, user)


def _record(action: AuditAction, request: HttpRequest, user: User) -> None:
    log_action(
        action,
        person=user,
        team=only_team(user),
        kind="person",
        object_id=user.get_username(),
        address=_address(request),
    )


def _address(request: HttpRequest) -> str:
    return str(request.META.get("REMOTE_ADDR") or "")
