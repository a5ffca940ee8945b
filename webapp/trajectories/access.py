"""The one way in which views reach a group or a trajectory."""

from django.http import HttpRequest

from webapp.accounts.access import owned_row
from webapp.accounts.models import Role
from webapp.trajectories.models import Group, Trajectory


def get_group(request: HttpRequest, pk: int, role: Role = Role.VIEWER) -> Group:
    """The group with its experiment and task loaded; 404 for strangers, 403 below `role`."""
    return owned_row(request, Group, pk, role, "experiment", "task")


def get_trajectory(request: HttpRequest, pk: int, role: Role = Role.VIEWER) -> Trajectory:
    """The trajectory with its experiment, group and task loaded; 404 for strangers, 403 below `role`."""
    return owned_row(request, Trajectory, pk, role, "experiment", "group", "task")
