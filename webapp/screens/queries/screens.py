"""Reading: who may watch or control, and how a screen stands at this moment."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import AbstractBaseUser
from django.db.models import BooleanField, ExpressionWrapper, Q, QuerySet
from django.utils import timezone

from training.contracts.config import DesktopConfig
from training.contracts.types import Purpose, Source, TrajectoryStatus
from webapp.accounts.models import Membership, Role, Team
from webapp.experiments.models import TaskRecord
from webapp.screens.models import ACTIVE_CONTROLS, Control
from webapp.tasks_library.models import Draft
from webapp.trajectories.models import Trajectory

MAX_TASKS_SHOWN = 60
SILENCE = timedelta(seconds=7)
"""A worker beats every 2 s, and its lease of the desktop lasts at least 10 s after its last beat."""


def role_for(user: AbstractBaseUser, trajectory_id: int) -> Role | None:
    """The user's role in the team that owns the trajectory; None for strangers and retired users."""
    if not user.is_authenticated or not user.is_active:
        return None
    owners = Trajectory.objects.filter(pk=trajectory_id).values("team_id")
    mine = Membership.objects.filter(user_id=user.pk, team_id__in=owners)
    held = mine.values_list("role", flat=True).first()
    return Role(held) if held else None


@dataclass(frozen=True, slots=True)
class ScreenState:
    """How a trajectory's screen and its control stand."""

    status: TrajectoryStatus
    source: Source
    addresses: list[str]
    """Empty while there is no screen."""
    control_id: int | None
    control_status: str
    controller_id: int | None
    controller: str
    is_watch: bool
    connection: str
    is_silent: bool
    """Its worker has not been heard of: its desktop may be lent to another trajectory."""

    @property
    def is_watchable(self) -> bool:
        return bool(self.addresses) and not self.is_silent and not self.status.is_final()


def state_of_screen(trajectory_id: int) -> ScreenState | None:
    """Two short queries; None when the trajectory does not exist."""
    asked = Trajectory.objects.filter(pk=trajectory_id)
    row = asked.values("status", "source", "heartbeat_at", "screen__addresses").first()
    if row is None:
        return None
    held = Control.objects.filter(trajectory_id=trajectory_id, status__in=ACTIVE_CONTROLS)
    control = held.select_related("user").first()
    return ScreenState(
        status=TrajectoryStatus(row["status"]),
        source=Source(row["source"]),
        addresses=row["screen__addresses"] or [],
        control_id=control.pk if control else None,
        control_status=control.status if control else "",
        controller_id=control.user_id if control else None,
        controller=control.user.get_username() if control else "",
        is_watch=bool(control and control.is_watch),
        connection=control.connection if control else "",
        is_silent=row["heartbeat_at"] is not None and timezone.now() - row["heartbeat_at"] > SILENCE,
    )


def screen_state(trajectory: Trajectory, user: AbstractBaseUser) -> dict[str, Any]:
    """What the desktop page needs to know, as JSON."""
    standing = state_of_screen(trajectory.pk)
    assert standing is not None
    last = trajectory.controls.order_by("-id").first()
    return {
        "status": standing.status,
        "source": standing.source,
        "isFinal": standing.status.is_final(),
        "hasScreen": standing.is_watchable,
        "isSilent": standing.is_silent,
        "noScreen": trajectory.desktop_config.provider_section.no_screen_reason,
        "control": standing.control_id,
        "controlStatus": standing.control_status,
        "controller": standing.controller,
        "isWatch": standing.is_watch,
        "isMine": standing.controller_id == user.pk and standing.control_id is not None,
        "lastControl": last.status if last else "",
        "numTurns": trajectory.num_turns,
        "score": trajectory.score,
        "errorText": trajectory.error[:300],
        "lastFrame": trajectory.last_frame,
        "numAhead": num_ahead(trajectory),
        "draft": _draft_standing(trajectory),
    }


def draft_of(trajectory: Trajectory) -> Draft | None:
    """Of a task that is made at this desktop."""
    return Draft.objects.filter(trajectory=trajectory).first() if is_demonstration(trajectory) else None


def _draft_standing(trajectory: Trajectory) -> str:
    """What a person who makes a task here does: arranging, doing, done; "" where none is made."""
    if not is_demonstration(trajectory):
        return ""
    known = Draft.objects.filter(trajectory=trajectory)
    has_end = ExpressionWrapper(Q(end__isnull=False), BooleanField())
    row = known.annotate(has_end=has_end).values_list("start_turn", "has_end").first()
    if row is None:
        return ""
    return "done" if row[1] else "arranging" if row[0] is None else "doing"


def num_ahead(trajectory: Trajectory) -> int:
    """Trajectories that run while this one waits for a desktop."""
    if trajectory.status != TrajectoryStatus.QUEUED:
        return 0
    return Trajectory.objects.filter(sent_at__isnull=False, ended_at=None).exclude(pk=trajectory.pk).count()


def demonstrable_tasks(
    team: Team, desktops: DesktopConfig, words: str = "", family: str = "", split: str = ""
) -> QuerySet[TaskRecord]:
    """Tasks that such desktops can run and that fit the filter, in a stable order."""
    rows = TaskRecord.objects.of(team).current().listed().runnable(desktops).select_related("task_set")
    if family:
        rows = rows.filter(family=family)
    if split:
        rows = rows.filter(split=split)
    return rows.with_words(words).order_by("task_set__name", "family", "task_id")


def is_demonstration(trajectory: Any) -> bool:
    """True when a person acts from the first turn on: there is no agent to hand back to."""
    return trajectory.purpose == Purpose.DEMONSTRATION and trajectory.group.source == Source.HUMAN
