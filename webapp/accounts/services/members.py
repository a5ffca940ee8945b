"""Writes about members and their passwords."""

import secrets

from django.contrib.auth.models import User
from django.db import transaction

from webapp.accounts.models import AuditAction, Membership, Role, Team
from webapp.accounts.services.audit_log import log_action, only_team

PASSWORD_BYTES = 12
FIRST_ADMIN = "admin"


class MemberError(ValueError):
    """Raised when a change would leave a team without an admin, or names no user."""


@transaction.atomic
def create_first_admin() -> str | None:
    """Make the admin of the team "home" and return the password; None when any user exists."""
    users = User.objects
    if users.exists():
        return None
    password = secrets.token_urlsafe(PASSWORD_BYTES)
    admin = users.create_superuser(username=FIRST_ADMIN, password=password)
    team, _ = Team.objects.get_or_create(name="home")
    Membership.objects.create(team=team, user=admin, role=Role.ADMIN)
    return password


@transaction.atomic
def add_member(
    *, team: Team, username: str, role: Role, by: User | None = None
) -> tuple[Membership, str | None]:
    """Put a user into the team; a new one gets a generated password, which is returned once."""
    user = User.objects.filter(username=username).first()
    password = None
    if user is None:
        if alike := User.objects.filter(username__iexact=username).first():
            raise MemberError(
                f"username: {alike.get_username()} exists; another one may not differ in capitals alone."
            )
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
