"""What watchers of trajectories and experiments are told; inside the writing transaction."""

from typing import Any

from django.dispatch import Signal

from training.contracts.types import TrajectoryStatus
from webapp.experiments.lifecycle.status_changes import stream_of as experiment_stream
from webapp.live.event_publishing import publish
from webapp.trajectories.models import Trajectory

work_waiting = Signal()
"""Sent after a commit that lets a trajectory wait for a slot, or gives a slot back."""


def announce_work() -> None:
    """Tell the dispatcher that there may be something to send; after the commit."""
    work_waiting.send(sender=None)


def stream_of(trajectory_id: int) -> str:
    """Name of the trajectory's event stream."""
    return f"trajectory.{trajectory_id}"


def announce(trajectory: Trajectory, status: TrajectoryStatus, **more: Any) -> None:
    """Tell the watchers of the trajectory and of its experiment; inside the writing transaction."""
    payload = {"trajectory": trajectory.pk, "group": trajectory.group_id, "status": status, **more}
    publish(stream_of(trajectory.pk), "trajectory.updated", payload)
    if trajectory.experiment_id:
        publish(experiment_stream(trajectory.experiment_id), "trajectory.updated", payload)
