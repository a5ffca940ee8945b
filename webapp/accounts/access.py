"""Who may see and do what: one line at the start of each view, API function and subscription.

    membership = member(request)                                  # any member of the current team
    experiment = get_experiment(request, pk, Role.OPERATOR)       # this one, with at least this role

A stranger gets 404 (the row does not exist for them), a member whose role is too low gets 403. The role
counts in the team that owns the row, so a link works whichever team is the current one. Each application
has its own `get_...` in its module `access`, made with `owned_row`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, cast

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.core.exceptions import PermissionDenied
from django.db.models import Model
from django.db.models.expressions import Combinable
from django.http import Http404, HttpRequest

from webapp.accounts.models import Membership, Role, Team

if TYPE_CHECKING:
    from django.contrib.auth.models import User

TEAM_SESSION_KEY = "team_id"

M = TypeVar("M", bound=Model)


class MemberRequest(HttpRequest):
    """What a view holds once this module has let it pass; a type only, never constructed."""

    user: User
    membership: Membership
    """The user's role in the team that this page is about."""


def memberships(request: HttpRequest) -> list[Membership]:
    """All memberships of the signed-in user with their teams, oldest first; at most one query per request."""
    known = getattr(request, "_memberships", None)
    if known is None:
        known = getattr(request.user, "held_memberships", None)
        if known is None:  # a token's owner, who came without a session
            rows = Membership.objects.filter(user=request.user.pk)
            known = list(rows.select_related("team").order_by("id"))
        if (scope := getattr(request, "token_scope", None)) is not None:
            for held in known:  # never saved: a token narrows its owner's role for one request
                held.own_role = held.role  # type: ignore[attr-defined]
                held.role = held.role if scope.role.includes(Role(held.role)) else scope.role
        request._memberships = known  # type: ignore[attr-defined]
    return cast("list[Membership]", known)


def current_membership(request: HttpRequest) -> Membership | None:
    """The membership chosen in this session, else the first one; None for a user without a team."""
    chosen = getattr(request, "membership", None)
    if chosen is None:
        team_id = request.session.get(TEAM_SESSION_KEY) if hasattr(request, "session") else None
        mine = memberships(request)
        chosen = next((m for m in mine if m.team_id == team_id), mine[0] if mine else None)
    return chosen


def member(request: HttpRequest, role: Role = Role.VIEWER) -> Membership:
    """The user's membership in the current team; 403 without a team or with less than `role`."""
    found = current_membership(request)
    if found is None:
        raise PermissionDenied("You belong to no team yet; ask an admin to add you to one.")
    return _require(request, found, role)


def owned_row(
    request: HttpRequest, model: type[M], pk: int, role: Role, *related: str, **also: Combinable
) -> M:
    """Row `pk` of a model that has a `team`, both loaded; 404 for strangers, 403 below `role`.

    `also` are expressions that the same statement reads: name of the attribute -> expression.
    """
    mine = {m.team_id: m for m in memberships(request)}
    rows: Any = model._default_manager.filter(team_id__in=mine).select_related(*related).annotate(**also)
    row = rows.filter(pk=pk).first() if mine else None
    if row is None:
        name = model._meta.object_name or "row"
        raise Http404(f"No such {name.lower()}, or it belongs to a team that you are not in.")
    held = mine[row.team_id]
    row.team = held.team
    _require(request, held, role)
    return cast(M, row)


def team_member(request: HttpRequest, pk: int) -> Membership:
    """A membership of the current team, for its admins; 404 for another team's."""
    team = member(request, Role.ADMIN).team
    found = team.memberships.select_related("user", "team").filter(pk=pk).first()
    if found is None:
        raise Http404("No such member in this team.")
    return found


def may_read(user: AbstractBaseUser | AnonymousUser, model: type[Model], pk: int) -> bool:
    """True when `user` is an active member of the team that owns row `pk` of `model` (or is it)."""
    if not user.is_authenticated:
        return False
    path = "memberships" if model is Team else "team__memberships"
    mine = {f"{path}__user_id": user.pk, f"{path}__user__is_active": True}
    return model._default_manager.filter(pk=pk, **mine).exists()


def is_member(user: AbstractBaseUser | AnonymousUser) -> bool:
    """True when `user` is active and belongs to any team."""
    return user.is_authenticated and Membership.objects.filter(user_id=user.pk, user__is_active=True).exists()


def _require(request: HttpRequest, held: Membership, role: Role) -> Membership:
    if not Role(held.role).includes(role):
        scope, own = getattr(request, "token_scope", None), getattr(held, "own_role", held.role)
        if scope is not None and Role(own).includes(role):
            raise PermissionDenied(
                f"This needs the role {role}, which you have in {held.team}, but the scope of this token is "
                f"{scope} ({scope.label}). Make a token with a wider scope on your profile page."
            )
        raise PermissionDenied(
            f"This needs the role {role}; you are {held.role} in {held.team}. Ask an admin of the team."
        )
    request.membership = held  # type: ignore[attr-defined]
    return held
