"""Writes about API tokens."""

import hashlib
import secrets
from datetime import timedelta

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone
from django.utils.crypto import salted_hmac

from webapp.accounts.models import ApiToken, AuditAction, Scope
from webapp.accounts.services.audit_log import log_action, only_team

DEFAULT_DAYS = 90
DAYS = (7, 30, DEFAULT_DAYS, 365)
"""How long a token may be made for."""


@transaction.atomic
def create_token(*, user: User, name: str, scope: Scope = Scope.OPERATE, days: int = DEFAULT_DAYS) -> str:
    """A new API token of `user`, returned once: only its digest is kept."""
    secret = f"dh_{secrets.token_urlsafe(32)}"
    ApiToken.objects.create(
        user=user,
        name=name,
        digest=digest(secret),
        hint=secret[:7],
        scope=scope,
        expires_at=timezone.now() + timedelta(days=days),
        password_mark=password_mark(user),
    )
    detail = {"scope": scope, "days": days}
    log_action(
        AuditAction.TOKEN_CREATED, person=user, team=only_team(user), kind="token", object_id=name, **detail
    )
    return secret


@transaction.atomic
def revoke_token(*, user: User, pk: int) -> bool:
    """Delete one of the user's own tokens; False when there is none such."""
    token = ApiToken.objects.filter(user=user, pk=pk).first()
    if token is None or not token.delete()[0]:
        return False
    log_action(
        AuditAction.TOKEN_REVOKED, person=user, team=only_team(user), kind="token", object_id=token.name
    )
    return True


def find_token(secret: str) -> ApiToken | None:
    """The token, with its owner, while it is valid; notes the day of its use."""
    token = ApiToken.objects.select_related("user").filter(digest=digest(secret)).first()
    if token is None or not token.user.is_active or token.password_mark != password_mark(token.user):
        return None
    now = timezone.now()
    if token.expires_at is not None and token.expires_at <= now:
        return None
    if token.used_on != now.date():
        ApiToken.objects.filter(pk=token.pk).update(used_on=now.date())
    return token


def password_mark(user: User) -> str:
    """What changes with the password, by whatever way it is changed."""
    return salted_hmac("webapp.accounts.ApiToken", user.password, algorithm="sha256").hexdigest()


def digest(secret: str) -> str:
    """What is stored of a token. It has 256 random bits, so a plain hash cannot be searched."""
    return hashlib.sha256(secret.encode()).hexdigest()
