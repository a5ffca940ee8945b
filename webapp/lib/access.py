"""Who may see and do what: one line at the start of each view, API function and subscription.

    membership = member(request)                                  # any member of the current team
    experiment = get_experiment(request, pk, Role.OPERATOR)       # this one, with at least this role

A stranger gets 404 (the row does not exist for them), a member whose role is too low gets 403. The role
counts in the team that owns the row, so a link works whichever team is the current one.

Models are looked up by name: this module lies below the applications that own them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from django.apps import apps
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

    from webapp.accounts.models import Membership, Role
    from webapp.experiments.models import Experiment
    from webapp.replay.models import ReplayEntry
    from webapp.trajectories.models import Group, Trajectory

TEAM_SESSION_KEY = "team_id"


def memberships(request: HttpRequest) -> list[Membership]:
    """All memberships of the signed-in user with their teams, oldest first; one query per request."""
    known = getattr(request, "_memberships", None)
    if known is None:
        model = apps.get_model("accounts", "Membership")
        user_id: Any = getattr(request.user, "pk", None)
        known = list(model.objects.filter(user_id=user_id).select_related("team").order_by("id"))
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


def member(request: HttpRequest, role: Role | str = "viewer") -> Membership:
    """The user's membership in the current team; 403 without a team or with less than `role`."""
    found = current_membership(request)
    if found is None:
        raise PermissionDenied("You belong to no team yet; ask an admin to add you to one.")
    return _require(request, found, role)


def get_experiment(request: HttpRequest, pk: int, role: Role | str = "viewer") -> Experiment:
    """The experiment with its team and owner loaded."""
    return cast("Experiment", _get(request, "experiments.Experiment", pk, role, "owner"))


def get_group(request: HttpRequest, pk: int, role: Role | str = "viewer") -> Group:
    """The group with its experiment and task loaded."""
    return cast("Group", _get(request, "trajectories.Group", pk, role, "experiment", "task"))


def get_trajectory(request: HttpRequest, pk: int, role: Role | str = "viewer") -> Trajectory:
    """The trajectory with its experiment, group and task loaded."""
    names = ("experiment", "group", "task")
    return cast("Trajectory", _get(request, "trajectories.Trajectory", pk, role, *names))


def get_entry(request: HttpRequest, pk: int, role: Role | str = "viewer") -> ReplayEntry:
    """The replay entry with its trajectory and that one's task loaded."""
    names = ("trajectory", "trajectory__task", "trajectory__experiment", "labelled_by")
    return cast("ReplayEntry", _get(request, "replay.ReplayEntry", pk, role, *names))


def may_read(user: AbstractBaseUser | AnonymousUser, label: str, pk: int) -> bool:
    """True when `user` is an active member of the team that owns row `pk` of model `label` (or is it)."""
    if not user.is_authenticated:
        return False
    path = "memberships" if label == "accounts.Team" else "team__memberships"
    mine = {f"{path}__user_id": user.pk, f"{path}__user__is_active": True}
    return apps.get_model(label).objects.filter(pk=pk, **mine).exists()


def is_member(user: AbstractBaseUser | AnonymousUser) -> bool:
    """True when `user` is active and belongs to any team."""
    model = apps.get_model("accounts", "Membership")
    return user.is_authenticated and model.objects.filter(user_id=user.pk, user__is_active=True).exists()


def _get(request: HttpRequest, label: str, pk: int, role: Role | str, *related: str) -> Any:
    mine = {m.team_id: m for m in memberships(request)}
    rows = apps.get_model(label).objects.filter(team_id__in=mine)
    row = rows.select_related(*related).filter(pk=pk).first() if mine else None
    if row is None:
        raise Http404(f"No such {label.split('.')[1].lower()}, or it belongs to a team that you are not in.")
    held = mine[row.team_id]
    row.team = held.team
    _require(request, held, role)
    return row


def _require(request: HttpRequest, held: Membership, role: Role | str) -> Membership:
    roles = type(held)._meta.get_field("role").choices
    order = [value for value, _ in roles]  # type: ignore[union-attr]
    if order.index(held.role) < order.index(str(role)):
        raise PermissionDenied(
            f"This needs the role {role}; you are {held.role} in {held.team}. Ask an admin of the team."
        )
    request.membership = held  # type: ignore[attr-defined]
    return held
