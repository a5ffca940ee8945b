"""Whose account a provider's person is, and which roles their groups give.

An account is found by issuer and subject, never by its name or address: who may choose those at the provider
would otherwise choose an account here.
"""

from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.contrib.auth.validators import UnicodeUsernameValidator
from django.core.exceptions import ValidationError
from django.db import transaction

from webapp.accounts.identity_providers.oidc.provider import SignInRefused
from webapp.accounts.models import Membership, OidcIdentity, Role, Team
from webapp.accounts.services.members import MemberError, add_member, change_role, remove_member

MAX_NAME = 150


@transaction.atomic
def account_of(claims: dict[str, Any]) -> User:
    """The account of the person, made at their first sign-in, with today's roles. Raises SignInRefused."""
    issuer, subject = settings.OIDC_ISSUER.rstrip("/"), str(claims["sub"])
    known = OidcIdentity.objects.select_related("user").filter(issuer=issuer, subject=subject).first()
    user = known.user if known else _new_account(claims)
    if not known:
        OidcIdentity.objects.create(user=user, issuer=issuer, subject=subject)
    if not user.is_active:
        raise SignInRefused(f"The account {user} is not active; ask an administrator.")
    _apply_groups(user, claims.get(settings.OIDC_GROUPS_CLAIM) or [])
    return user


def _new_account(claims: dict[str, Any]) -> User:
    name = str(claims.get("preferred_username") or claims.get("email") or claims["sub"])
    try:
        UnicodeUsernameValidator()(name)
    except ValidationError as error:
        raise SignInRefused(
            f"The provider's name {name[:40]!r} cannot be one here: letters, digits and @.+-_"
        ) from error
    if len(name) > MAX_NAME or User.objects.filter(username=name).exists():
        raise SignInRefused(
            f"An account {name[:40]} is here already. Sign in with its password, or ask an administrator to "
            "connect it with the provider (admin site, OIDC identities)."
        )
    return User.objects.create_user(name, email=str(claims.get("email") or ""))


def _apply_groups(user: User, groups: Any) -> None:
    """Give the roles of DESKHAND_OIDC_GROUPS in the teams that it names; no others change."""
    held = {str(group) for group in groups} if isinstance(groups, list | tuple) else {str(groups)}
    wanted: dict[str, Role | None] = {}
    for group, team, role in _group_roles():
        before = wanted.setdefault(team, None)
        if group in held and (before is None or role.includes(before)):
            wanted[team] = role
    for name, highest in wanted.items():
        if found := Team.objects.filter(name=name).first():
            _set_role(found, user, highest)


def _group_roles() -> list[tuple[str, str, Role]]:
    """(group, team, role) of each part of DESKHAND_OIDC_GROUPS. Raises SignInRefused."""
    found = []
    for part in settings.OIDC_GROUPS:
        group, equals, place = part.partition("=")
        team, colon, role = place.rpartition(":")
        if not equals or not colon or role not in Role.values:
            raise SignInRefused(
                f"DESKHAND_OIDC_GROUPS: {part!r} is not GROUP=TEAM:ROLE; tell an administrator."
            )
        found.append((group, team, Role(role)))
    return found


def _set_role(team: Team, user: User, role: Role | None) -> None:
    membership = Membership.objects.select_related("team", "user").filter(team=team, user=user).first()
    try:
        if membership is None and role is not None:
            add_member(team=team, username=user.get_username(), role=role, by=user)
        elif membership is not None and role is None:
            remove_member(membership=membership, by=user)
        elif membership is not None and role is not None and membership.role != role:
            change_role(membership=membership, role=role, by=user)
    except MemberError as error:
        raise SignInRefused(f"Your groups have changed, and {error}") from error
