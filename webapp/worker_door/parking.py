"""Desktops that may not be had at once, or that others rent out: parking, keys, clusters in use."""

from datetime import timedelta

from django.utils import timezone

from training.contracts.config import ExperimentConfig, GatewayConfig
from training.contracts.types import TrajectoryStatus
from webapp.experiments.models import Experiment
from webapp.fleet.services import desktops
from webapp.lib.remote_calls import OwnTrajectory, caller, env_host
from webapp.trajectories.models import Trajectory
from webapp.trajectories.services import parking
from webapp.trajectories.services.turns import reported_trajectory
from webapp.worker_door.ownership import run_by_caller
from webapp.worker_door.trajectories import end_errored


@env_host.request
def unended_trajectories() -> list[int]:
    """All of them, or those of the calling joined host."""
    rows = Trajectory.objects.filter(ended_at=None)
    return list(run_by_caller(rows).values_list("pk", flat=True))


@env_host.request
def gateways_in_use() -> list[GatewayConfig]:
    """The clusters of experiments that ran in the last day; on a joined host, that ran there."""
    recent = run_by_caller(Trajectory.objects.filter(created_at__gt=timezone.now() - timedelta(days=1)))
    rows = Experiment.objects.filter(
        config__desktops__provider="gateway", pk__in=recent.values("experiment_id")
    )
    return list({ExperimentConfig.model_validate(row.config).desktops.gateway for row in rows})


@env_host.report
def park(
    trajectory_id: OwnTrajectory,
    reason: str,
    position: int | None,
    wait_s: float | None,
    retry_after_s: float | None,
    limit_s: float,
) -> None:
    """No desktop is free: the trajectory waits without a slot, `limit_s` at most; 0 = without limit."""
    row = reported_trajectory(trajectory_id)
    waited_s = parking.waited_s(row)
    if limit_s and waited_s > limit_s:
        end_errored(row.pk, "parked_too_long", f"no desktop for {waited_s:.0f} s: {reason}")
        return
    notice = parking.ParkingNotice(
        reason=reason, position=position, wait_s=wait_s, retry_after_s=retry_after_s
    )
    if not parking.park_trajectory(trajectory=row, notice=notice):
        end_errored(row.pk, "desktop_quota", reason)  # it ran already; a cancelled one stays cancelled


@env_host.patient_request
def unpark(trajectory_id: OwnTrajectory) -> bool:
    """There is a desktop for a trajectory that may have been parked; False when it was cancelled."""
    row = reported_trajectory(trajectory_id)
    return row.status != TrajectoryStatus.PARKED or parking.unpark_trajectory(trajectory=row)


@env_host.report
def end_remote_desktop(desktop_id: str) -> None:
    """Record that a slot closed a desktop; one of a remote service ends by that."""
    desktops.end_remote_desktop(name=desktop_id, host=caller.get())
