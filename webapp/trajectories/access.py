"""The one way in which views reach a group or a trajectory."""

from django.contrib.auth.models import AbstractBaseUser
from django.http import HttpRequest

from webapp.accounts.access import owned_row
from webapp.accounts.models import Role
from webapp.accounts.services.audit_log import log_viewing
from webapp.trajectories.models import Group, Trajectory


def get_group(request: HttpRequest, pk: int) -> Group:
    """The group with its experiment and task loaded; 404 for strangers."""
    return owned_row(request, Group, pk, Role.VIEWER, "experiment", "task")


def get_trajectory(request: HttpRequest, pk: int, role: Role = Role.VIEWER) -> Trajectory:
    """The trajectory with its experiment, group and task loaded; 404 for strangers, 403 below `role`."""
    return owned_row(request, Trajectory, pk, role, "experiment", "group", "task")


def note_viewing(person: AbstractBaseUser, trajectory: Trajectory) -> None:
    """The audit log tells who looks at a screen that still changes, by page or by socket."""
    if not trajectory.is_final:
        team, pk = trajectory.team_id, trajectory.pk
        log_viewing(person=person, team=team, kind="trajectory", object_id=pk, how="viewer")


def note_watching(person: AbstractBaseUser, pk: int) -> None:
    """The same of a socket that asks for the screens of a trajectory by its number."""
    if found := Trajectory.objects.filter(pk=pk).only("team_id", "status").first():
        note_viewing(person, found)
