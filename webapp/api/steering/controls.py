"""/trajectories/ID/screen and control, /controls, /demonstrations: people at desktops.

Input itself goes through the screen's socket; here control is asked for, renewed and ended.
"""

from typing import Any, Literal

from django.shortcuts import get_object_or_404
from ninja import Field, Router, Schema, Status

from training.contracts.types import TrajectoryStatus
from webapp.accounts.access import MemberRequest, member
from webapp.accounts.models import Role
from webapp.api.errors import Conflict
from webapp.experiments.models import TaskRecord
from webapp.fleet.queries.demonstration_desktop_kinds import offer_named, offers
from webapp.lib.request_values import MAX_WHOLE, BadValue
from webapp.screens.access import get_own_control
from webapp.screens.queries import screens
from webapp.screens.queries.screens import is_demonstration
from webapp.screens.services import controls
from webapp.trajectories.access import get_trajectory
from webapp.trajectories.models import Trajectory
from webapp.trajectories.services.trajectories import end_trajectory

router = Router(tags=["desktops"])


class ScreenOut(Schema):
    """How a trajectory's screen and its control stand."""

    trajectory_id: int
    status: str
    source: str
    is_final: bool = Field(alias="isFinal")
    has_screen: bool = Field(alias="hasScreen")
    no_screen: str = Field(alias="noScreen")
    """Why there is none, of desktops that never have one."""
    control_id: int | None = Field(alias="control")
    control_status: str = Field(alias="controlStatus")
    """requested, held, ...; "" when no person controls it."""
    controller: str
    is_mine: bool = Field(alias="isMine")
    num_turns: int = Field(alias="numTurns")
    score: float | None
    error: str = Field(alias="errorText")
    last_frame: str = Field(alias="lastFrame")
    num_ahead: int = Field(alias="numAhead")
    """Trajectories that run while this one waits for a desktop."""


class FinishIn(Schema):
    """What the person says of the task."""

    claim: Literal["success", "failure"] = "success"
    """failure: for a task that cannot be done."""


class OfferOut(Schema):
    """A kind of desktop for demonstrations."""

    name: str
    label: str
    provider: str


class DemonstrationIn(Schema):
    """What to demonstrate, and where."""

    task: int = Field(ge=0, le=MAX_WHOLE)
    """Id of a task, as `list_tasks` tells."""
    desktop: str = ""
    """Name of an offer; "" = the first."""
    reads_texts: bool = False
    """Record accessibility tree and terminal with each turn."""


@router.get("/trajectories/{int:pk}/screen", response=ScreenOut, operation_id="show_screen")
def show_screen(request: MemberRequest, pk: int) -> Any:
    """Who controls it, whether there is a screen, how it stands."""
    return _state(request, get_trajectory(request, pk))


@router.post("/trajectories/{int:pk}/control", response=ScreenOut, operation_id="take_control")
def take_control(request: MemberRequest, pk: int) -> Any:
    """Ask for control; it has to be renewed within 20 s, again and again. 409 names who has it."""
    trajectory = get_trajectory(request, pk, Role.OPERATOR)
    try:
        controls.request_control(trajectory=trajectory, user=request.user)
    except controls.ControlTaken as error:
        raise Conflict(f"{error}.") from error
    return _state(request, trajectory)


@router.post("/controls/{int:pk}/renew", response=ScreenOut, operation_id="renew_control")
def renew_control(request: MemberRequest, pk: int) -> Any:
    """The person is still there."""
    control = get_own_control(request, pk)
    controls.renew_control(control_id=control.pk, user_id=request.user.pk)
    return _state(request, control.trajectory)


@router.post("/controls/{int:pk}/hand-back", response=ScreenOut, operation_id="hand_back_control")
def hand_back_control(request: MemberRequest, pk: int) -> Any:
    """Let the agent go on; a demonstration has none and is cancelled."""
    control = get_own_control(request, pk)
    controls.hand_back_control(control=control)
    if is_demonstration(control.trajectory):
        end_trajectory(trajectory_id=control.trajectory_id, status=TrajectoryStatus.CANCELLED)
    return _state(request, get_trajectory(request, control.trajectory_id))


@router.post("/controls/{int:pk}/finish", response=ScreenOut, operation_id="finish_control")
def finish_control(request: MemberRequest, pk: int, body: FinishIn) -> Any:
    """End the trajectory and have it evaluated."""
    control = get_own_control(request, pk)
    if not controls.finish_control(control=control, claim=body.claim):
        raise Conflict("You do not control this desktop any more.")
    return _state(request, control.trajectory)


@router.get("/demonstrations/desktops", response=list[OfferOut], operation_id="list_demonstration_desktops")
def list_demonstration_desktops(request: MemberRequest) -> Any:
    """Kinds of desktops that machines of the fleet can provide now."""
    member(request, Role.OPERATOR)
    return offers()


@router.post("/demonstrations", response={201: ScreenOut}, operation_id="start_demonstration")
def start_demonstration(request: MemberRequest, body: DemonstrationIn) -> Any:
    """Get a clean desktop with the task's set-up, and control of it."""
    membership = member(request, Role.OPERATOR)
    offer = offer_named(body.desktop) if body.desktop else offers()[0]
    if offer is None:
        raise BadValue("desktop", "no such kind; see /api/v1/demonstrations/desktops")
    runnable = TaskRecord.objects.of(membership.team).runnable(offer.desktops)
    control = controls.start_demonstration(
        task=get_object_or_404(runnable, pk=body.task),
        team_id=membership.team_id,
        user=request.user,
        desktops=offer.desktops,
        reads_texts=body.reads_texts,
    )
    return Status(201, _state(request, get_trajectory(request, control.trajectory_id)))


def _state(request: MemberRequest, trajectory: Trajectory) -> dict[str, Any]:
    return {"trajectory_id": trajectory.pk, **screens.screen_state(trajectory, request.user)}
