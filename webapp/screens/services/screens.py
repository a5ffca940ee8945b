"""Live screens: opened, closed, watched."""

from django.contrib.auth.models import User
from django.db import transaction

from webapp.accounts.services.audit_log import log_viewing
from webapp.lib.remote_calls import OwnTrajectory, env_host
from webapp.live.event_publishing import publish
from webapp.screens.models import (
    ACTIVE_CONTROLS,
    Control,
    ControlStatus,
    Screen,
)
from webapp.screens.services.controls import move_control
from webapp.trajectories.models import Trajectory
from webapp.trajectories.services.announcements import stream_of


@transaction.atomic
def open_screen(*, trajectory_id: int, addresses: list[str]) -> None:
    """The desktop of a trajectory can be watched from now on."""
    Screen.objects.update_or_create(trajectory_id=trajectory_id, defaults={"addresses": addresses})
    publish(stream_of(trajectory_id), "screen.opened", {"trajectory": trajectory_id})


@env_host.report
@transaction.atomic
def close_screen(trajectory_id: OwnTrajectory) -> None:
    """The desktop goes to another trajectory; its control ends."""
    Screen.objects.filter(trajectory_id=trajectory_id).delete()
    for control in Control.objects.filter(trajectory_id=trajectory_id, status__in=ACTIVE_CONTROLS):
        move_control(control, ControlStatus.ENDED)
    publish(stream_of(trajectory_id), "screen.closed", {"trajectory": trajectory_id})


def log_watching(user: User, trajectory_id: int) -> None:
    """Note in the audit log who looks at this screen."""
    team = Trajectory.objects.values_list("team_id", flat=True).get(pk=trajectory_id)
    log_viewing(person=user, team=team, kind="trajectory", object_id=trajectory_id, how="screen")
