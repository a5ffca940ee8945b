"""The life of one trajectory: claimed by exactly one worker, moved by its transition table, ended."""

from datetime import timedelta
from functools import partial
from typing import Any

from django.db import transaction
from django.db.models import F, Q
from django.utils import timezone

from training.contracts.types import TRAJECTORY_TRANSITIONS, Limit, Source, TrajectoryStatus
from webapp.fleet.models import Desktop, Worker
from webapp.fleet.services.workers import is_silent
from webapp.lib.remote_calls import OwnTrajectory, env_host
from webapp.lib.transitions import sources_of
from webapp.trajectories.models import RUNNING, Trajectory
from webapp.trajectories.services.announcements import announce, announce_work
from webapp.trajectories.services.group_places import (
    count_place,
    has_left_its_group,
    queue_place,
    rerun_place,
)
from webapp.trajectories.services.nothing_scored_guard import pause_if_nothing_is_scored

HEARTBEAT_TIMEOUT = timedelta(seconds=10)
"""An env worker beats every 2 s for every trajectory that it runs."""
UNTOLD_AFTER = timedelta(seconds=30)
"""A joined host that beats, and tells nothing of a trajectory for so long, never got the answer to its claim:
the web stood still meanwhile, say. It would be waited for as long as for a host that is away."""


def claim_trajectory(*, trajectory_id: int, worker: Worker) -> Trajectory | None:
    """Take a queued trajectory; None when it was cancelled or another worker has it."""
    now = timezone.now()
    with transaction.atomic():
        claimed = Trajectory.objects.filter(pk=trajectory_id, status=TrajectoryStatus.QUEUED).update(
            status=TrajectoryStatus.RESETTING, worker=worker, heartbeat_at=now, started_at=now
        )
        if not claimed:
            return None
        trajectory = Trajectory.objects.select_related("group", "task", "experiment").get(pk=trajectory_id)
        announce(trajectory, TrajectoryStatus.RESETTING)
    return trajectory


def move_trajectory(*, trajectory: Trajectory, to: TrajectoryStatus, desktop: Desktop | None = None) -> bool:
    """Next status of a running trajectory; False when it was cancelled meanwhile."""
    values: dict[str, Any] = {"status": to, "heartbeat_at": timezone.now()}
    if desktop is not None:
        values["desktop"] = desktop
    with transaction.atomic():
        moved = Trajectory.objects.filter(
            pk=trajectory.pk, status__in=sources_of(to, TRAJECTORY_TRANSITIONS)
        ).update(**values)
        if moved:
            announce(trajectory, to)
    return bool(moved)


def beat_trajectories(trajectory_ids: list[int]) -> None:
    """Heartbeat of an env worker for all that it runs."""
    held = Trajectory.objects.filter(pk__in=trajectory_ids, status__in=(*RUNNING, TrajectoryStatus.PARKED))
    held.update(heartbeat_at=timezone.now())


def end_trajectory(
    *,
    trajectory_id: int,
    status: TrajectoryStatus,
    score: float | None = None,
    reward: float | None = None,
    terms: list[dict[str, Any]] | None = None,
    error: str = "",
    error_kind: str = "",
    limit: Limit | None = None,
) -> bool:
    """Final status; an errored place is queued again or, when retries are used up, stays empty."""
    assert status.is_final()
    with transaction.atomic():
        changed = Trajectory.objects.filter(
            pk=trajectory_id, status__in=sources_of(status, TRAJECTORY_TRANSITIONS)
        ).update(
            status=status,
            score=score,
            reward=reward,
            terms=terms or [],
            error=error,
            error_kind=error_kind,
            limit=limit or "",
            ended_at=timezone.now(),
        )
        if not changed:
            return False
        trajectory = Trajectory.objects.select_related("group", "experiment").get(pk=trajectory_id)
        announce(trajectory, status, reward=reward, score=score, error=error)
        is_counted = not has_left_its_group(trajectory)
        if is_counted and not (status == TrajectoryStatus.ERRORED and rerun_place(trajectory)):
            count_place(trajectory, scored=status.is_scored())
    transaction.on_commit(partial(announce_work, slot_given_back=True))
    if status == TrajectoryStatus.ERRORED:
        pause_if_nothing_is_scored(trajectory)
    return True


def take_out_of_group(*, trajectory_id: int) -> None:
    """A person acts in this trajectory: it is no sample of the policy, and its place is run again."""
    trajectory = Trajectory.objects.select_related("group", "experiment").get(pk=trajectory_id)
    if trajectory.source == Source.HUMAN:
        return
    with transaction.atomic():
        running = Trajectory.objects.filter(pk=trajectory_id, status__in=RUNNING)
        if not running.update(source=Source.HUMAN):
            return
        announce(trajectory, TrajectoryStatus(trajectory.status), source=Source.HUMAN)
        if not trajectory.group.is_cancelled:
            queue_place(trajectory, tries=trajectory.tries)
    transaction.on_commit(announce_work)


def lose_stale_trajectories() -> list[int]:
    """End what dead env workers were running as errored (their places are re-run elsewhere)."""
    untold = Q(worker__is_joined=True, heartbeat_at__lt=F("worker__heartbeat_at") - UNTOLD_AFTER)
    stale = Trajectory.objects.filter(is_silent(HEARTBEAT_TIMEOUT, "worker__") | untold, status__in=RUNNING)
    lost = []
    for trajectory in stale.select_related("worker"):
        name = trajectory.worker.name if trajectory.worker else "its worker"
        if end_trajectory(
            trajectory_id=trajectory.pk,
            status=TrajectoryStatus.ERRORED,
            error=f"env worker {name} stopped answering for it",
            error_kind="worker_lost",
        ):
            lost.append(trajectory.pk)
    return lost


def live_on_desktop(name: str) -> list[int]:
    """Ids of the trajectories that run on a desktop now."""
    rows = Trajectory.objects.filter(desktop__name=name, status__in=RUNNING)
    return list(rows.values_list("pk", flat=True))


@env_host.request
def take_away(trajectory_id: OwnTrajectory, error: str) -> bool:
    """An operator took its desktop: errored, and its place is run again. False when it had ended."""
    return end_trajectory(
        trajectory_id=trajectory_id,
        status=TrajectoryStatus.ERRORED,
        error=error,
        error_kind="desktop_operator",
    )


def hand_back_job(*, trajectory_id: int) -> None:
    """The worker that got the job takes nothing new: it waits in the database again."""
    Trajectory.objects.filter(pk=trajectory_id, status=TrajectoryStatus.QUEUED).update(sent_at=None)
