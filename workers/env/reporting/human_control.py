"""Screens that are open to people, control of them, and what people did."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.utils import timezone

from training.contracts.types import Action
from webapp.lib.patience import patient
from webapp.screens import screen_control
from webapp.screens.models import ACTIVE_CONTROLS, Control, ControlStatus, HumanInput
from webapp.screens.relay_tickets import read_ticket

__all__ = ["Control", "ControlStatus", "HumanAction", "close_screen", "open_screen", "read_ticket"]


@dataclass(frozen=True, slots=True)
class HumanAction:
    """One action of a person; `action` is None while it goes on."""

    index: int
    began_at: datetime
    action: Action | None
    ended_at: datetime | None


@patient
def open_screen(trajectory_id: int, addresses: list[str]) -> None:
    screen_control.open_screen(trajectory_id=trajectory_id, addresses=addresses)


@patient
def close_screen(trajectory_id: int) -> None:
    screen_control.close_screen(trajectory_id=trajectory_id)


@patient
def active_control(trajectory_id: int) -> Control | None:
    """The control that is requested or held, after ending one that was not renewed."""
    control = Control.objects.filter(trajectory_id=trajectory_id, status__in=ACTIVE_CONTROLS).first()
    if control is not None and control.expires_at < timezone.now():
        screen_control.expire_controls(trajectory_id=trajectory_id)
        return None
    return control


@patient
def grant(control: Control) -> bool:
    """Pause the agent for this person; False when they no longer want it."""
    return screen_control.grant_control(control=control)


@patient
def refresh(control: Control) -> Control:
    """The same row as it is now."""
    control.refresh_from_db()
    if control.is_active and control.expires_at < timezone.now():
        screen_control.expire_controls(trajectory_id=control.trajectory_id)
        control.refresh_from_db()
    return control


@patient
def human_actions(control: Control, first: int) -> list[HumanAction]:
    """What the person did from number `first` on, in order."""
    rows = HumanInput.objects.filter(control=control, index__gte=first).order_by("index")
    return [
        HumanAction(
            index=row.index,
            began_at=row.began_at,
            action=Action.model_validate(row.action) if row.action else None,
            ended_at=row.ended_at,
        )
        for row in rows
    ]
