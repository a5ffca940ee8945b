"""A worker's own row, and the jobs of a host that does not reach Redis."""

from dataclasses import dataclass
from typing import Annotated, Any

from django.utils import timezone
from pydantic import Field

from training.contracts.types import TrajectoryStatus
from webapp.experiments.models import Attempt
from webapp.experiments.services.attempts import lose_attempt
from webapp.fleet.models import JoinedHost, Worker
from webapp.fleet.services import workers
from webapp.fleet.services.workers import stop_worker as stop_worker
from webapp.lib import send_job
from webapp.lib.remote_calls import (
    NotYours,
    OwnHost,
    OwnWorker,
    any_host,
    caller,
    env_host,
    gpu_host,
    served_team,
)
from webapp.trajectories.models import RUNNING, Trajectory
from webapp.trajectories.services import trajectories as trajectory_services
from webapp.trajectories.services.trajectories import hand_back_job
from webapp.worker_door.job_tickets import make_ticket
from webapp.worker_door.ownership import require_own_name, require_worker

ClockS = Annotated[float, Field(ge=0, le=1e11)]
"""Seconds since the epoch by a worker's own clock."""


@any_host.request
def beat_worker(
    name: str, queue: str, host: OwnHost, pid: int, slots: int, version: str, clock_s: ClockS
) -> bool:
    """Record that a worker is alive; True while it is being drained."""
    _hear(version, clock_s)
    heartbeat: dict[str, Any] = {"name": name, "queue": queue, "host": host, "pid": pid, "slots": slots}
    heartbeat |= {"version": version, "is_joined": bool(caller.get())}
    is_draining = workers.beat_again(**heartbeat)
    if is_draining is not None:
        return is_draining
    require_own_name(name, queue)
    try:
        return workers.beat_worker(**heartbeat).is_draining
    except workers.NameTaken as error:
        raise NotYours(str(error)) from error


def _hear(version: str, clock_s: float) -> None:
    """Note when the calling joined host was heard, its version, and how far its clock is from ours."""
    if host := caller.get():
        now = timezone.now()
        skew_s = round(clock_s - now.timestamp(), 2)
        JoinedHost.objects.filter(host__name=host).update(heard_at=now, version=version, clock_skew_s=skew_s)


@any_host.report
def begin_anew(worker_name: str) -> None:
    """The worker was started: what it ran before ended with its last process."""
    worker = Worker.objects.filter(name=worker_name).first()
    if worker is None:
        return
    require_worker(worker_name)
    for pk in Trajectory.objects.filter(worker=worker, status__in=RUNNING).values_list("pk", flat=True):
        trajectory_services.end_trajectory(
            trajectory_id=pk,
            status=TrajectoryStatus.ERRORED,
            error=f"{worker.queue} worker {worker_name} was started anew",
            error_kind="worker_lost",
        )
    for row in Attempt.objects.filter(worker_name=worker_name, ended_at=None).select_related("experiment"):
        lose_attempt(row, f"gpu worker {worker_name} was started anew")


@dataclass(frozen=True, slots=True)
class GpuJob:
    """An attempt that is to be begun, or joined as one of its further hosts."""

    name: str
    """As Celery knows it."""
    arguments: tuple[int, int]


@gpu_host.request
def take_gpu_jobs(worker_name: OwnWorker) -> list[GpuJob]:
    """What was placed on a gpu worker that does not reach Redis: the oldest job, or none."""
    found = send_job.take_placed(worker_name)
    return [GpuJob(*found)] if found else []


@env_host.request
def take_jobs(worker_name: OwnWorker, count: int) -> dict[int, str]:
    """Trajectories that were sent to env workers, taken from Redis for a host that does not reach it.

    id -> ticket to claim it with
    """
    worker = Worker.objects.get(name=worker_name)
    found = send_job.take_jobs(
        send_job.RUN_TRAJECTORY, host=worker.host, count=count, is_for_it=_is_served if caller.get() else None
    )
    taken: dict[int, str] = {}
    for row in Trajectory.objects.filter(pk__in=found).select_related("group", "experiment"):
        if row.desktop_config.provider_info.needs_redis:
            hand_back_job(trajectory_id=row.pk)
        else:
            taken[row.pk] = make_ticket(row.pk, worker.host)
    return taken


def _is_served(trajectory_id: int) -> bool:
    """Whether the caller works for its team; one that is gone is anyone's."""
    team = served_team.get()
    return team is None or not Trajectory.objects.filter(pk=trajectory_id).exclude(team=team).exists()
