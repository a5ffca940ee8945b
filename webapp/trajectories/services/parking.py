"""Parked trajectories: the service that lends the desktops has none free, so they wait without a slot.

    queued -> resetting -> parked -> (asks again at `retry_at`) -> parked | resetting -> running ...
Parked is not failed: no retry is used up. The row keeps its place in its group and in the lender's queue; the
slot that asked is free at once. While a worker asks again, the row has that worker and stays parked.
"""

import random
from dataclasses import dataclass
from datetime import timedelta

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from training.contracts.types import TrajectoryStatus
from webapp.fleet.models import Worker
from webapp.fleet.services.workers import is_silent
from webapp.trajectories.models import Trajectory
from webapp.trajectories.services.announcements import announce
from webapp.trajectories.services.trajectories import HEARTBEAT_TIMEOUT

FIRST_PAUSE_S = 2.0
LONGEST_PAUSE_S = 60.0
"""Between two questions when the service did not say when to ask again."""
SHORTEST_PAUSE_S = 0.5
LONGEST_HINT_S = 600.0
"""Of what a service asks for: one that says tomorrow, or a wrong clock, may have a place long before."""
JITTER = 1.1
LONGEST_QUESTION_S = 300.0
"""Until it is sent, claimed and answered again: what takes longer counts as this."""


@dataclass(frozen=True, kw_only=True)
class ParkingNotice:
    """What the other side said."""

    reason: str
    position: int | None = None
    """Place in its queue, 1 = next."""
    wait_s: float | None = None
    """Its estimate, seconds."""
    retry_after_s: float | None = None
    """When it wants to be asked again, seconds."""


def park_trajectory(*, trajectory: Trajectory, notice: ParkingNotice) -> bool:
    """Let it wait without a slot; False when it was cancelled meanwhile."""
    now = timezone.now()
    asked = (trajectory.parking or {}).get("asked", 0) + 1
    since = trajectory.parked_at or now
    parking = {
        "reason": notice.reason[:300],
        "position": notice.position,
        "wait_s": notice.wait_s,
        "asked": asked,
        "waited_s": waited_s(trajectory),
        "asked_at": now.timestamp(),
    }
    with transaction.atomic():
        parked = Trajectory.objects.filter(
            pk=trajectory.pk, status__in=[TrajectoryStatus.RESETTING, TrajectoryStatus.PARKED]
        ).update(
            status=TrajectoryStatus.PARKED,
            parking=parking,
            parked_at=since,
            retry_at=now + timedelta(seconds=pause_s(notice.retry_after_s, asked)),
            sent_at=None,
            worker=None,
            heartbeat_at=None,
            started_at=None,
        )
        if parked:
            announce(trajectory, TrajectoryStatus.PARKED, **parking)
    return bool(parked)


def waited_s(trajectory: Trajectory) -> float:
    """Since it was parked, seconds; a clock that is set between two questions adds no hours to it."""
    before = trajectory.parking or {}
    if "asked_at" not in before:
        return 0.0
    since_s = timezone.now().timestamp() - before["asked_at"]
    return before["waited_s"] + min(max(since_s, 0.0), LONGEST_HINT_S * JITTER + LONGEST_QUESTION_S)


def pause_s(retry_after_s: float | None, asked: int) -> float:
    """Until the next question, seconds; jitter keeps parked trajectories from asking all at once."""
    if retry_after_s is None:
        longest = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2 ** min(asked - 1, 10))
        return random.uniform(longest / 2, longest)
    return min(max(SHORTEST_PAUSE_S, retry_after_s), LONGEST_HINT_S) * random.uniform(1.0, JITTER)


def is_due() -> Q:
    """Parked, and to be asked for again: now, or by a time that no pause reaches.

    Such a time was written before the clock was set back; it would come only after as many hours.
    """
    now = timezone.now()
    beyond = now + timedelta(seconds=LONGEST_HINT_S * JITTER)
    return Q(status=TrajectoryStatus.PARKED) & (Q(retry_at__lte=now) | Q(retry_at__gt=beyond))


def claim_parked(*, trajectory_id: int, worker: Worker) -> Trajectory | None:
    """Take a parked trajectory to ask for it again; it stays parked. None when another worker has it."""
    claimed = Trajectory.objects.filter(
        pk=trajectory_id, status=TrajectoryStatus.PARKED, worker=None, sent_at__isnull=False
    ).update(worker=worker, heartbeat_at=timezone.now())
    if not claimed:
        return None
    return Trajectory.objects.select_related("group", "task", "experiment").get(pk=trajectory_id)


def unpark_trajectory(*, trajectory: Trajectory) -> bool:
    """There is a desktop for it now; False when it was cancelled meanwhile."""
    now = timezone.now()
    with transaction.atomic():
        moved = Trajectory.objects.filter(pk=trajectory.pk, status=TrajectoryStatus.PARKED).update(
            status=TrajectoryStatus.RESETTING, started_at=now, heartbeat_at=now
        )
        if moved:
            announce(trajectory, TrajectoryStatus.RESETTING)
    return bool(moved)


def free_lost_questions() -> int:
    """Ask again for what a dead worker was asking for: nothing was begun, so nothing is lost."""
    lost = Trajectory.objects.filter(
        is_silent(HEARTBEAT_TIMEOUT, "worker__") | Q(heartbeat_at=None),
        status=TrajectoryStatus.PARKED,
        worker__isnull=False,
    )
    return lost.update(worker=None, sent_at=None, retry_at=timezone.now())
