"""Writes about members, passwords and API tokens."""

import hashlib
import secrets
from datetime import timedelta

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone
from django.utils.crypto import salted_hmac

from webapp.accounts.audit.log_action import log_action, only_team
from webapp.accounts.models import ApiToken, AuditAction, Membership, Role, Scope, Team

PASSWORD_BYTES = 12
DEFAULT_DAYS = 90
DAYS = (7, 30, DEFAULT_DAYS, 365)
"""How long a token may be made for."""


class MemberError(ValueError):
    """Raised when a change would leave a team without an admin, or names no user."""


@transaction.atomic
def add_member(
    *, team: Team, username: str, role: Role, by: User | None = None
) -> tuple[Membership, str | None]:
    """Put a user into the team; a new one gets a generated password, which is returned once."""
    user = User.objects.filter(username=username).first()
    password = None
    if user is None:
        password = secrets.token_urlsafe(PASSWORD_BYTES)
        user = User.objects.create_user(username=username, password=password)
    if Membership.objects.filter(team=team, user=user).exists():
        raise MemberError(f"username: {username} is in {team} already; change the role in the list.")
    made = Membership.objects.create(team=team, user=user, role=role, made_account=password is not None)
    _record(AuditAction.MEMBER_ADDED, made, by, role=role, new_account=made.made_account)
    return made, password


@transaction.atomic
def change_role(*, membership: Membership, role: Role, by: User | None = None) -> None:
    """Give a member another role."""
    _keep_an_admin(membership, role)
    Membership.objects.filter(pk=membership.pk).update(role=role)
    _record(AuditAction.ROLE_CHANGED, membership, by, before=membership.role, after=role)


@transaction.atomic
def remove_member(*, membership: Membership, by: User | None = None) -> None:
    """Take a user out of the team; what they did stays."""
    _keep_an_admin(membership, None)
    _record(AuditAction.MEMBER_REMOVED, membership, by, before=membership.role)
    Membership.objects.filter(pk=membership.pk).delete()


def _record(action: AuditAction, membership: Membership, by: User | None, **detail: object) -> None:
    name = membership.user.get_username()
    log_action(action, person=by, team=membership.team_id, kind="person", object_id=name, **detail)


def _keep_an_admin(membership: Membership, role: Role | None) -> None:
    # Locking the team's rows: two admins removing each other at once must not both succeed.
    admins = Membership.objects.filter(team=membership.team_id, role=Role.ADMIN)
    admins = admins.select_for_update().order_by("id")
    if role != Role.ADMIN and [admin.pk for admin in admins] == [membership.pk]:
        raise MemberError(
            f"role: {membership.user} is the only admin of {membership.team}; name another first."
        )


@transaction.atomic
def reset_password(*, membership: Membership, by: User | None = None) -> str:
    """Generate a new password for a member and return it once.

    Only of accounts that this team made and that no other team uses: an admin here has no rights there, and
    adding a person to a team must not be a way to their account.
    """
    user = membership.user
    is_ours = membership.made_account and not user.is_superuser
    if not is_ours or user.memberships.exclude(team=membership.team_id).exists():
        raise MemberError(
            f"{user} belongs to other teams too, or was not made by this one; they change their password "
            "themselves, or an administrator of the installation does."
        )
    password = secrets.token_urlsafe(PASSWORD_BYTES)
    membership.user.set_password(password)
    membership.user.save(update_fields=["password"])
    _record(AuditAction.PASSWORD_CHANGED, membership, by)
    return password


def record_own_password(user: User) -> None:
    """Note in the audit log that a person changed their own password."""
    name = user.get_username()
    log_action(AuditAction.PASSWORD_CHANGED, person=user, team=only_team(user), kind="person", object_id=name)


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
