"""Screens that are open to people, control of them, and what people did."""

from dataclasses import dataclass
from datetime import datetime

from django.utils import timezone

from training.contracts.types import Action
from training.outgoing.remote_addresses import is_within_machine
from webapp.lib.remote_calls import NotYours, OwnControl, OwnTrajectory, caller, env_host
from webapp.screens import relay_tickets
from webapp.screens.models import ACTIVE_CONTROLS, Control, HumanInput
from webapp.screens.models import ControlStatus as ControlStatus
from webapp.screens.services import controls, screens
from webapp.screens.services.controls import grant_control as grant_control
from webapp.screens.services.screens import close_screen as close_screen
from webapp.worker_door.ownership import require_trajectory


@dataclass(frozen=True, slots=True)
class ControlNow:
    """A person's time at a desktop, as it stands."""

    pk: int
    status: ControlStatus
    claim: str
    """What the person says when finishing: success or failure."""
    is_drained: bool
    """After the end: all that the person did has been written."""
    is_watch: bool = False
    """The person only watches; the agent waits."""


@dataclass(frozen=True, slots=True)
class HumanAction:
    """One action of a person; `action` is None while it goes on."""

    index: int
    began_at: datetime
    action: Action | None
    ended_at: datetime | None


@env_host.request
def read_ticket(ticket: str) -> int | None:
    """Its trajectory; None for a forged or old ticket. Raises NotYours for one of another host."""
    trajectory_id = relay_tickets.read_ticket(ticket)
    if trajectory_id is not None and caller.get():
        require_trajectory(trajectory_id)
    return trajectory_id


@env_host.report
def open_screen(trajectory_id: OwnTrajectory, addresses: list[str]) -> None:
    """The server connects to the first that answers. Raises NotYours for what is of the server's own."""
    for address in addresses if caller.get() else []:
        kind, _, place = address.partition(":")
        if kind != "tcp" or is_within_machine(place.rpartition(":")[0].strip("[]")):
            raise NotYours(f"addresses: {address} is no screen of {caller.get()}")
    screens.open_screen(trajectory_id=trajectory_id, addresses=addresses)


@env_host.patient_request
def active_control(trajectory_id: OwnTrajectory) -> ControlNow | None:
    """The control that is requested or held, after ending one that was not renewed."""
    found = Control.objects.filter(trajectory_id=trajectory_id, status__in=ACTIVE_CONTROLS).first()
    if found is None:
        return None
    now = refresh_control(found.pk)
    return now if now.status in ACTIVE_CONTROLS else None


@env_host.patient_request
def refresh_control(control_id: OwnControl) -> ControlNow:
    """The same control as it is now."""
    control = Control.objects.get(pk=control_id)
    if control.is_active and control.expires_at < timezone.now():
        controls.expire_controls(trajectory_id=control.trajectory_id)
        control.refresh_from_db()
    return ControlNow(
        control.pk, ControlStatus(control.status), control.claim, control.is_drained, control.is_watch
    )


@env_host.patient_request
def human_actions(control_id: OwnControl, first: int) -> list[HumanAction]:
    """What the person did from number `first` on, in order."""
    rows = HumanInput.objects.filter(control=Control.objects.get(pk=control_id), index__gte=first).order_by(
        "index"
    )
    return [
        HumanAction(
            index=row.index,
            began_at=row.began_at,
            action=Action.model_validate(row.action) if row.action else None,
            ended_at=row.ended_at,
        )
        for row in rows
    ]
