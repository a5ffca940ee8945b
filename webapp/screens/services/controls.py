"""Writes about live screens and who controls them.

Invariants: at most one person controls a trajectory's desktop; from the moment a person does, the
trajectory is no sample of the policy; control that is not renewed ends by itself.
"""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.utils import timezone

from training.contracts.config import DesktopConfig
from training.contracts.types import Purpose, Source, TrajectoryStatus
from webapp.accounts.models import AuditAction
from webapp.accounts.services.audit_log import log_action, log_viewing
from webapp.experiments.models import Experiment, TaskRecord
from webapp.lib.remote_calls import OwnControl, env_host
from webapp.lib.transitions import sources_of
from webapp.live.event_publishing import publish
from webapp.screens.models import (
    ACTIVE_CONTROLS,
    CONTROL_TRANSITIONS,
    Control,
    ControlStatus,
    HumanInput,
    Screen,
)
from webapp.screens.rfb.gestures_to_actions import Gesture
from webapp.trajectories.models import Trajectory
from webapp.trajectories.services.announcements import stream_of
from webapp.trajectories.services.groups import GroupSpec, create_group
from webapp.trajectories.services.trajectories import take_out_of_group

CONTROL_TTL = timedelta(seconds=20)
"""How long control outlives its tab: long enough to reload the page."""
WATCH_LIMIT = timedelta(seconds=60)
"""How long an agent waits for someone who only watches."""
CONTROLLABLE = (TrajectoryStatus.QUEUED, TrajectoryStatus.RESETTING, TrajectoryStatus.RUNNING)


class ControlTaken(Exception):
    """Raised when another person controls the desktop; `holder` is their name."""

    def __init__(self, holder: str) -> None:
        super().__init__(f"{holder} controls this desktop")
        self.holder = holder


class NotControllable(Exception):
    """Raised when a trajectory has no desktop that a person could control; the message says why."""


def request_control(*, trajectory: Trajectory, user: User, is_watch: bool = False) -> Control:
    """Ask for control; the env worker grants it when the agent's turn is over.

    `is_watch`: the agent only waits, until the person takes the desktop over or lets it go on.
    Asking again while one has it answers with the same row. Raises ControlTaken, NotControllable.
    """
    if trajectory.status not in CONTROLLABLE:
        raise NotControllable("This trajectory does not run any more; its desktop belongs to the next one.")
    if reason := trajectory.desktop_config.provider_section.no_screen_reason:
        raise NotControllable(reason)
    is_to_begin = trajectory.source == Source.HUMAN or trajectory.status != TrajectoryStatus.RUNNING
    if not is_to_begin and not Screen.objects.filter(trajectory=trajectory).exists():
        raise NotControllable("This desktop has no screen that a person could use.")
    expire_controls(trajectory_id=trajectory.pk)
    try:
        with transaction.atomic():
            expires_at = timezone.now() + CONTROL_TTL
            control = Control.objects.create(
                trajectory=trajectory, user=user, expires_at=expires_at, is_watch=is_watch
            )
            if is_watch:
                team, pk = trajectory.team_id, trajectory.pk
                log_viewing(person=user, team=team, kind="trajectory", object_id=pk, how="hold")
            else:
                _record(AuditAction.TOOK_CONTROL, control)
            _announce(control)
            return control
    except IntegrityError:
        holder = Control.objects.select_related("user").get(trajectory=trajectory, status__in=ACTIVE_CONTROLS)
    if holder.user_id != user.pk:
        raise ControlTaken(holder.user.get_username())
    if holder.is_watch and not is_watch:
        _take_over(holder)
    return holder


@transaction.atomic
def _take_over(control: Control) -> None:
    """Who watched wants the desktop now."""
    Control.objects.filter(pk=control.pk).update(is_watch=False)
    control.refresh_from_db()
    _record(AuditAction.TOOK_CONTROL, control)
    _announce(control)


def watch(*, trajectory: Trajectory, user: User) -> int:
    """Have the agent wait for a person who watches; which trajectory it is: this one, or where that is over,
    the one of its experiment that begins next. Raises ControlTaken, NotControllable.
    """
    if trajectory.is_final and trajectory.experiment is not None:
        return hold_next(experiment=trajectory.experiment, user=user, is_watch=True).trajectory_id
    return request_control(trajectory=trajectory, user=user, is_watch=True).trajectory_id


def hold_next(*, experiment: Experiment, user: User, is_watch: bool = False) -> Control:
    """Ask for control of the experiment's trajectory that begins next: its agent waits before its first turn,
    however short the task is. Raises NotControllable when none is to begin.
    """
    waiting = experiment.trajectories.exclude(controls__status__in=ACTIVE_CONTROLS)
    for status in (TrajectoryStatus.RESETTING, TrajectoryStatus.QUEUED):
        if (found := waiting.filter(status=status).order_by("pk").first()) is not None:
            return request_control(trajectory=found, user=user, is_watch=is_watch)
    raise NotControllable("No trajectory is about to begin; try again when the next step samples.")


@env_host.patient_request
@transaction.atomic
def grant_control(control_id: OwnControl) -> bool:
    """Pause the agent for this person; False when they no longer want it. The trajectory leaves its group."""
    control = Control.objects.get(pk=control_id)
    if not move_control(control, ControlStatus.HELD, held_at=timezone.now()):
        return False
    take_out_of_group(trajectory_id=control.trajectory_id)
    return True


def attach_connection(*, control_id: int, user_id: int, connection: str) -> Control | None:
    """Let the input of this browser connection pass, and that of no other; None when control is over."""
    with transaction.atomic():
        mine = Control.objects.filter(pk=control_id, user_id=user_id, status__in=ACTIVE_CONTROLS)
        values = {"connection": connection, "is_drained": False, "expires_at": timezone.now() + CONTROL_TTL}
        if not mine.update(**values):
            return None
        control = Control.objects.get(pk=control_id)
        _announce(control)
    return control


def renew_control(*, control_id: int, user_id: int) -> bool:
    """The person's tab is still open; False when control is over."""
    mine = Control.objects.filter(pk=control_id, user_id=user_id, status__in=ACTIVE_CONTROLS)
    mine = mine.exclude(is_watch=True, requested_at__lt=timezone.now() - WATCH_LIMIT)
    return bool(mine.update(expires_at=timezone.now() + CONTROL_TTL))


@transaction.atomic
def hand_back_control(*, control: Control) -> bool:
    """Let the agent go on; False when control was over before."""
    return move_control(control, ControlStatus.HANDED_BACK)


@transaction.atomic
def finish_control(*, control: Control, claim: Literal["success", "failure"]) -> bool:
    """End the trajectory and have it evaluated; False when control was over before."""
    return move_control(control, ControlStatus.FINISHED, claim=claim)


def expire_controls(*, trajectory_id: int) -> None:
    """End control that was not renewed."""
    stale = Control.objects.filter(
        trajectory_id=trajectory_id, status__in=ACTIVE_CONTROLS, expires_at__lt=timezone.now()
    )
    for control in stale:
        with transaction.atomic():
            move_control(control, ControlStatus.EXPIRED)


def mark_drained(*, control_id: int, connection: str) -> None:
    """Everything that the person did through this connection has been written."""
    Control.objects.filter(pk=control_id, connection=connection).update(is_drained=True)


def move_control(control: Control, to: ControlStatus, **values: Any) -> bool:
    """Change the status if it may change; one of two who try wins."""
    sources = sources_of(to, CONTROL_TRANSITIONS)
    if to not in ACTIVE_CONTROLS:
        values["ended_at"] = timezone.now()
        if not control.connection:
            values["is_drained"] = True  # it never had a connection to act through
    if not Control.objects.filter(pk=control.pk, status__in=sources).update(status=to, **values):
        return False
    control.refresh_from_db()
    if to not in ACTIVE_CONTROLS and not control.is_watch:
        _record(
            AuditAction.ENDED_CONTROL,
            control,
            how=to,
            **({"claim": claim} if (claim := control.claim) else {}),
        )
    _announce(control)
    return True


def _record(action: AuditAction, control: Control, **detail: object) -> None:
    team, trajectory = control.trajectory.team_id, control.trajectory_id
    log_action(action, person=control.user, team=team, kind="trajectory", object_id=trajectory, **detail)


def _announce(control: Control) -> None:
    payload = {
        "trajectory": control.trajectory_id,
        "control": control.pk,
        "status": control.status,
        "user": control.user.get_username()[:60],
        "connection": control.connection,
    }
    publish(stream_of(control.trajectory_id), "control.updated", payload)


def record_gestures(*, control_id: int, gestures: Iterable[Gesture]) -> None:
    """Write what began or ended."""
    for gesture in gestures:
        action = gesture.action.model_dump(mode="json", exclude_defaults=True) if gesture.action else None
        HumanInput.objects.update_or_create(
            control_id=control_id,
            index=gesture.index,
            defaults={
                "began_at": _moment(gesture.began_at),
                "action": action,
                "ended_at": None if gesture.ended_at is None else _moment(gesture.ended_at),
            },
        )


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, tz=UTC)


@transaction.atomic
def start_demonstration(
    *,
    task: TaskRecord,
    team_id: int,
    user: User,
    desktops: DesktopConfig | None = None,
    reads_texts: bool = False,
) -> Control:
    """Queue a trajectory that a person acts in from its first turn, and give that person control.

    Raises NotControllable when such desktops have no screen.
    """
    request = GroupSpec(
        task=task,
        size=1,
        purpose=Purpose.DEMONSTRATION,
        source=Source.HUMAN,
        desktops=desktops,
        reads_texts=reads_texts,
    )
    group = create_group(request=request, team_id=team_id)
    return request_control(trajectory=group.trajectories.get(), user=user)
