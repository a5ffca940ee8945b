"""The one way in which views reach a scanner or a scan."""

from django.http import Http404, HttpRequest

from webapp.accounts.access import owned_row
from webapp.accounts.models import Role, Team
from webapp.scanners.models import Scan
from webapp.scanners.queries.scanners import Known, get_known


def get_scan(request: HttpRequest, pk: int, role: Role = Role.VIEWER) -> Scan:
    """The scan with its scanner and owner loaded; 404 for strangers, 403 below `role`."""
    return owned_row(request, Scan, pk, role, "scanner", "owner")


def get_scanner(team: Team, key: str) -> Known:
    """A shipped one, or the team's; 404 for any other."""
    known = get_known(team, key)
    if known is None:
        raise Http404("No such scanner, or it belongs to a team that you are not in.")
    return known
