"""What watchers of trajectories and experiments receive; inside the writing transaction."""

from typing import Any

from django.dispatch import Signal

from training.contracts.types import TrajectoryStatus
from webapp.experiments.queries.streams import experiment_stream
from webapp.live.event_publishing import publish_to
from webapp.trajectories.models import Trajectory

work_waiting = Signal()
"""Sent after a commit that lets a trajectory wait for a slot, or (`slot_given_back`) gives a slot back."""


def announce_work(*, slot_given_back: bool = False) -> None:
    """Tell the dispatcher that there may be something to send; after the commit."""
    work_waiting.send(sender=None, slot_given_back=slot_given_back)


def stream_of(trajectory_id: int) -> str:
    """Name of the trajectory's event stream."""
    return f"trajectory.{trajectory_id}"


def streams_of(trajectory_id: int, experiment_id: int | None) -> list[str]:
    """The trajectory's, and its experiment's if it has one."""
    names = [stream_of(trajectory_id)]
    return [*names, experiment_stream(experiment_id)] if experiment_id else names


def announce(trajectory: Trajectory, status: TrajectoryStatus, **more: Any) -> None:
    """Tell the watchers of the trajectory and of its experiment; inside the writing transaction."""
    payload = {"trajectory": trajectory.pk, "group": trajectory.group_id, "status": status, **more}
    publish_to(streams_of(trajectory.pk, trajectory.experiment_id), "trajectory.updated", payload)
