"""The one way in which views reach a sweep."""

from webapp.accounts.access import MemberRequest, owned_row
from webapp.accounts.models import Role
from webapp.experiments.models import Sweep


def get_sweep(request: MemberRequest, pk: int, role: Role = Role.VIEWER) -> Sweep:
    """The sweep with its team and owner loaded; 404 for strangers, 403 below `role`."""
    return owned_row(request, Sweep, pk, role, "owner")
