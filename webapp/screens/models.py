"""Live screens, who controls them, and what people did there."""

from enum import StrEnum

from django.conf import settings
from django.db import models
from django.db.models import Q

from webapp.lib.columns.stored_fields import ReportedJSONField
from webapp.trajectories.models import Trajectory


class ControlStatus(StrEnum):
    """Where a person's control of a desktop stands.

    requested -> held -> handed_back | finished | expired | ended
    """

    REQUESTED = "requested"
    """The agent finishes its turn first."""
    HELD = "held"
    """The agent is paused, the person's input passes."""
    HANDED_BACK = "handed_back"
    """The agent goes on."""
    FINISHED = "finished"
    """The person ended the trajectory; it is evaluated."""
    EXPIRED = "expired"
    """The tab was closed; the agent goes on, a demonstration is cancelled."""
    ENDED = "ended"
    """The trajectory ended under it."""


ACTIVE_CONTROLS = (ControlStatus.REQUESTED, ControlStatus.HELD)
_OVER = {ControlStatus.EXPIRED, ControlStatus.ENDED}
CONTROL_TRANSITIONS: dict[ControlStatus, set[ControlStatus]] = {
    ControlStatus.REQUESTED: {ControlStatus.HELD, ControlStatus.HANDED_BACK} | _OVER,
    ControlStatus.HELD: {ControlStatus.HANDED_BACK, ControlStatus.FINISHED} | _OVER,
    ControlStatus.HANDED_BACK: set(),
    ControlStatus.FINISHED: set(),
    ControlStatus.EXPIRED: set(),
    ControlStatus.ENDED: set(),
}


class Screen(models.Model):
    """Where the live screen of a running trajectory is reached; gone with the trajectory's desktop."""

    trajectory = models.OneToOneField(Trajectory, on_delete=models.CASCADE, related_name="screen")
    addresses = ReportedJSONField(default=list)
    """Of the env worker's relay, best first: `unix:PATH`, `tcp:HOST:PORT`."""
    opened_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"screen of trajectory {self.trajectory_id}"


class Control(models.Model):
    """One person's time at a desktop. One at most is active per trajectory."""

    trajectory = models.ForeignKey(Trajectory, on_delete=models.CASCADE, related_name="controls")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE)
    status = models.CharField(
        max_length=12,
        choices=[(status.value, status.value) for status in ControlStatus],
        default=ControlStatus.REQUESTED,
    )
    is_watch = models.BooleanField(default=False)
    """The person watches: the agent waits before its next turn, and the trajectory stays its own."""
    claim = models.CharField(max_length=8, blank=True)
    """What the person says when finishing: success, or failure for a task that cannot be done."""
    connection = models.CharField(max_length=32, blank=True)
    """The browser connection whose input passes; a newer one of the same person takes over."""
    is_drained = models.BooleanField(default=False)
    """Set after the end, once everything that the person did has been written."""
    requested_at = models.DateTimeField(auto_now_add=True)
    held_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    expires_at = models.DateTimeField()
    """Renewed while the person's tab is open."""

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["trajectory"],
                condition=Q(status__in=[status.value for status in ACTIVE_CONTROLS]),
                name="one_controller",
            )
        ]

    def __str__(self) -> str:
        return f"control {self.pk} of trajectory {self.trajectory_id}"

    @property
    def is_active(self) -> bool:
        return self.status in ACTIVE_CONTROLS


class HumanInput(models.Model):
    """One action of a person as the proxy saw it; the env worker makes a turn of it."""

    control = models.ForeignKey(Control, on_delete=models.CASCADE, related_name="inputs")
    index = models.IntegerField()
    began_at = models.DateTimeField()
    action = ReportedJSONField(null=True)
    """`training.contracts.types.Action`; null while it goes on."""
    ended_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["index"]
        constraints = [models.UniqueConstraint(fields=["control", "index"], name="input_once")]

    def __str__(self) -> str:
        return f"input {self.index} of control {self.control_id}"
