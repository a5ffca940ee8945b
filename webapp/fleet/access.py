"""Who may operate hosts, workers and desktops, which all teams share.

Operators of the fleet's teams (DESKHAND_FLEET_TEAMS; without it the installation's first team) and superusers
may operate everything. An operator of another team may restart or end a desktop, and only while a trajectory
of that team is on it: no other team is disturbed.
"""

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest

from webapp.accounts.access import member
from webapp.accounts.models import Membership, Role, Team
from webapp.fleet.models import Desktop, Verb
from webapp.fleet.queries.desktops import with_trajectories

OF_OWN_DESKTOP = (Verb.RESTART, Verb.KILL)
"""What an operator may do with a desktop that works for their team."""


def fleet_teams() -> list[str]:
    """Names of the teams whose operators may operate everything."""
    if settings.FLEET_TEAMS:
        return list(settings.FLEET_TEAMS)
    return list(Team.objects.order_by("id").values_list("name", flat=True)[:1])


def operates_fleet(request: HttpRequest, membership: Membership) -> bool:
    """True when the person may operate every host, worker and desktop."""
    if not Role(membership.role).includes(Role.OPERATOR):
        return False
    return getattr(request.user, "is_superuser", False) or membership.team.name in fleet_teams()


def desktop_verbs(request: HttpRequest, membership: Membership, desktop: Desktop) -> tuple[Verb, ...]:
    """What the person may do with this desktop now."""
    if operates_fleet(request, membership):
        return tuple(Verb)
    trajectory = with_trajectories([desktop], membership.team)[0].trajectory
    runs_for_team = trajectory is not None and trajectory.ended_at is None
    is_operator = Role(membership.role).includes(Role.OPERATOR)
    return OF_OWN_DESKTOP if is_operator and runs_for_team else ()


def require_fleet_operator(request: HttpRequest) -> None:
    """Pass people who may operate everything; 403 for others."""
    if not operates_fleet(request, member(request, Role.OPERATOR)):
        raise PermissionDenied(_whose())


def require_fleet_admin(request: HttpRequest) -> None:
    """Pass people who may let hosts join and revoke them; 403 for others."""
    if not operates_fleet(request, member(request, Role.ADMIN)):
        raise PermissionDenied(_whose())


def require_desktop_operator(request: HttpRequest, desktop: Desktop, verb: Verb) -> None:
    """Pass people who may do this to this desktop; 403 for others."""
    if verb not in desktop_verbs(request, member(request, Role.OPERATOR), desktop):
        raise PermissionDenied(f"{_whose()} Others may restart or kill a desktop that runs their trajectory.")


def _whose() -> str:
    return f"All teams share the fleet; operators of {' and '.join(fleet_teams())} operate it."
