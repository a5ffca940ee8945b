"""The one way in which views reach a person's control of a desktop."""

from django.core.exceptions import PermissionDenied
from django.http import Http404

from webapp.accounts.access import MemberRequest
from webapp.accounts.models import Role
from webapp.screens.models import Control
from webapp.trajectories.access import get_trajectory


def get_own_control(request: MemberRequest, pk: int) -> Control:
    """The user's own control, in a team in which they are still an operator."""
    control = Control.objects.filter(pk=pk).first()
    if control is None:
        raise Http404("No such control, or it belongs to a team that you are not in.")
    control.trajectory = get_trajectory(request, control.trajectory_id, Role.OPERATOR)
    if control.user_id != request.user.pk:
        raise PermissionDenied("Another person has this control; only they can end it.")
    return control
