"""Desktops that may not be had at once, or that others rent out: parking, keys, clusters in use."""

from __future__ import annotations

from datetime import timedelta

from django.utils import timezone

from training.contracts.config import ExperimentConfig, GatewayConfig
from training.contracts.types import TrajectoryStatus
from webapp.experiments.models import Experiment
from webapp.fleet import worker_reports
from webapp.lib.patience import patient
from webapp.trajectories import parked_trajectories
from workers.env.reporting.claims import TrajectoryRow
from workers.env.reporting.trajectories import end_errored
from workers.environments.contract import AtCapacity


def key_of(row: TrajectoryRow) -> str:
    """The trajectory's name towards a service that lends desktops, the same at every attempt."""
    return f"trajectory-{row.pk}"


def trajectory_keys() -> set[str]:
    """Keys of all trajectories that have not ended."""
    return {key_of(row) for row in TrajectoryRow.objects.filter(ended_at=None).only("pk")}


def gateways_in_use() -> list[GatewayConfig]:
    """The clusters of experiments that ran in the last day."""
    recent = TrajectoryRow.objects.filter(created_at__gt=timezone.now() - timedelta(days=1))
    rows = Experiment.objects.filter(
        config__desktops__provider="gateway", pk__in=recent.values("experiment_id")
    )
    return list({ExperimentConfig.model_validate(row.config).desktops.gateway for row in rows})


@patient
def park(row: TrajectoryRow, error: AtCapacity, limit_s: float) -> None:
    """No desktop is free: the trajectory waits without a slot, `limit_s` at most; 0 = without limit."""
    waited_s = (timezone.now() - row.parked_at).total_seconds() if row.parked_at else 0.0
    if limit_s and waited_s > limit_s:
        end_errored(row, "parked_too_long", f"no desktop for {waited_s:.0f} s: {error}")
        return
    notice = parked_trajectories.ParkingNotice(
        reason=str(error),
        position=error.position,
        wait_s=error.wait_s,
        retry_after_s=error.retry_after_s,
    )
    if not parked_trajectories.park_trajectory(trajectory=row, notice=notice):
        end_errored(row, "desktop_quota", str(error))  # it ran already; a cancelled one stays cancelled


@patient
def unpark(row: TrajectoryRow) -> bool:
    """There is a desktop for a trajectory that may have been parked; False when it was cancelled."""
    return row.status != TrajectoryStatus.PARKED or parked_trajectories.unpark_trajectory(trajectory=row)


@patient
def end_remote_desktop(desktop_id: str) -> None:
    """Record that a slot closed a desktop; one of a remote service ends by that."""
    worker_reports.end_remote_desktop(name=desktop_id)
