"""/fleet: hosts, workers and desktops, and what operators ask of them."""

from datetime import datetime
from typing import Any, Literal

from django.conf import settings
from django.shortcuts import get_object_or_404
from ninja import Field, Query, Router, Schema, Status

from webapp.accounts.access import MemberRequest, member
from webapp.accounts.models import Role
from webapp.api.errors import Conflict
from webapp.api.paging import Page, page_of
from webapp.fleet import history_charts
from webapp.fleet.access import require_desktop_operator, require_fleet_admin, require_fleet_operator
from webapp.fleet.display_rows import DesktopRow, HostRow
from webapp.fleet.models import Desktop, DesktopPhase, Host, JoinedHost, Operation, Verb, Worker
from webapp.fleet.queries import desktops
from webapp.fleet.queries import hosts as host_queries
from webapp.fleet.queries.workers import recent_workers
from webapp.fleet.services import operations
from webapp.worker_door.joined_hosts import joining

router = Router(tags=["fleet"])


class HostOut(Schema):
    """A machine with a desk host."""

    id: int = Field(alias="host.id")
    name: str = Field(alias="host.name")
    status: str
    """online, draining, drained or lost."""
    problem: str = Field(alias="host.problem")
    is_draining: bool = Field(alias="host.is_draining")
    max_desktops: int = Field(alias="host.max_desktops")
    num_desktops: int
    num_leased: int
    running: int
    """Trajectories that its workers run now."""
    cores: int = Field(alias="host.cores")
    cpu_percent: float = Field(alias="host.cpu_percent")
    memory_mb: float = Field(alias="host.memory_mb")
    memory_used_mb: float = Field(alias="host.memory_used_mb")
    disk_mb: float = Field(alias="host.disk_mb")
    disk_free_mb: float = Field(alias="host.disk_free_mb")
    joined_id: int | None
    """Of a host that joined over HTTPS and was not revoked: what `revoke_host` takes."""

    @staticmethod
    def resolve_joined_id(row: HostRow) -> int | None:
        joined = getattr(row.host, "joined", None)
        return joined.pk if joined and joined.revoked_at is None else None


class WorkerOut(Schema):
    """A process that takes jobs."""

    id: int = Field(alias="worker.id")
    name: str = Field(alias="worker.name")
    queue: str = Field(alias="worker.queue")
    host: str = Field(alias="worker.host")
    status: str
    slots: int = Field(alias="worker.slots")
    is_draining: bool = Field(alias="worker.is_draining")
    num_desktops: int
    running: int
    heartbeat_at: datetime = Field(alias="worker.heartbeat_at")


class FleetOut(Schema):
    """Everything but the desktops themselves."""

    totals: dict[str, int]
    hosts: list[HostOut]
    workers: list[WorkerOut]


class DesktopOut(Schema):
    """A desktop."""

    id: int = Field(alias="desktop.id")
    name: str = Field(alias="desktop.name")
    host: str = Field(alias="desktop.host")
    provider: str = Field(alias="desktop.provider")
    phase: str = Field(alias="desktop.phase")
    state: str
    """What its trajectory does, else its phase."""
    holder: str = Field(alias="desktop.holder")
    trajectory_id: int | None
    """Its newest one, where it is the current team's."""
    is_foreign: bool
    """Another team uses it now."""
    reason: str = Field(alias="desktop.reason")
    quarantine: str = Field(alias="desktop.quarantine")
    width: int = Field(alias="desktop.width")
    height: int = Field(alias="desktop.height")
    num_resets: int = Field(alias="desktop.num_resets")
    num_failures: int = Field(alias="desktop.num_failures")
    last_reset_s: float = Field(alias="desktop.last_reset_s")

    @staticmethod
    def resolve_trajectory_id(row: DesktopRow) -> int | None:
        return row.trajectory.pk if row.trajectory else None


class DesktopPage(Page[DesktopOut]):
    """Newest first; `next` is the `after` of the next page."""


class OperationOut(Schema):
    """Something that an operator asked for, and what became of it."""

    id: int
    verb: str
    kind: str
    target: str
    host: str
    reason: str
    status: str
    outcome: str
    asked_by: str = Field(alias="asked_by_name")
    asked_at: datetime
    ended_at: datetime | None


class OperationPage(Page[OperationOut]):
    """Newest first; `next` is the `after` of the next page."""


class OperateIn(Schema):
    """Why."""

    reason: str = Field("", max_length=300)
    """Needed to quarantine."""


class DrainIn(Schema):
    """Whether it takes new work."""

    on: bool


class InviteIn(Schema):
    """What the host is to give."""

    roles: list[Literal["env", "gpu"]] = Field(default=["env"], min_length=1)
    all_teams: bool = False
    """Whether the host may see tasks, configs and screenshots of every team; false = of the caller's team."""
    hosts: int | None = Field(default=1, ge=1)
    """How many may join with it; null = any number."""
    hours: float = Field(default=joining.TOKEN_HOURS, gt=0, le=joining.LONGEST_HOURS)
    """How long it is good for."""


class InvitationOut(Schema):
    """What lets hosts join."""

    server: str
    token: str
    command: str


@router.get("", response=FleetOut, operation_id="show_fleet")
def show_fleet(request: MemberRequest) -> Any:
    """Hosts, workers, and how many desktops are in which state."""
    member(request)
    workers, living = recent_workers(), desktops.living_desktops()
    hosts = host_queries.host_rows(workers, living)
    return {"totals": host_queries.totals(workers, hosts, living), "hosts": hosts, "workers": workers}


@router.get("/history", response=dict[str, Any], operation_id="show_fleet_history")
def show_fleet_history(request: MemberRequest, hours: Literal["1", "6", "24", "72"] = "1") -> Any:
    """Desktops by phase, reset times and errored trajectories over time, as the page's charts have them."""
    member(request)
    return history_charts.charts(hours)


@router.get("/desktops", response=DesktopPage, operation_id="list_desktops")
def list_desktops(
    request: MemberRequest,
    phase: DesktopPhase | Literal["", "failed"] = "",
    host: str = "",
    provider: str = "",
    q: str = "",
    after: str = "",
    limit: int = 50,
) -> Any:
    """Living desktops, newest first; `q`: words of its name, holder or trouble."""
    team = member(request).team
    chosen = {"phase": str(phase), "host": host, "provider": provider, "q": q}
    page = page_of(desktops.fitting_desktops(chosen), after, limit)
    return page | {"items": desktops.with_trajectories(page["items"], team)}


@router.get("/desktops/{name}", response=DesktopOut, operation_id="show_desktop")
def show_desktop(request: MemberRequest, name: str) -> Any:
    """One desktop."""
    team = member(request).team
    return desktops.with_trajectories([get_object_or_404(Desktop, name=name)], team)[0]


@router.post("/desktops/{name}/{verb}", response={202: OperationOut}, operation_id="operate_desktop")
def operate_desktop(
    request: MemberRequest,
    name: str,
    verb: Literal["restart", "quarantine", "release", "kill"],
    body: OperateIn,
) -> Any:
    """Ask its host for an operation; `list_operations` tells what became of it."""
    member(request, Role.OPERATOR)
    desktop = get_object_or_404(Desktop, name=name)
    require_desktop_operator(request, desktop, Verb(verb))
    asked = operations.request_operation(
        desktop=desktop, verb=Verb(verb), user=request.user, reason=body.reason
    )
    return Status(202, asked)


@router.get("/operations", response=OperationPage, operation_id="list_operations")
def list_operations(
    request: MemberRequest, target: str = Query("", max_length=120), after: str = "", limit: int = 50
) -> Any:
    """What operators asked for, newest first; `target`: name of a host, worker or desktop."""
    member(request)
    rows = Operation.objects.filter(target=target) if target else Operation.objects.all()
    return page_of(rows, after, limit)


@router.post("/workers/{int:pk}/drain", response=OperationOut, operation_id="drain_worker")
def drain_worker(request: MemberRequest, pk: int, body: DrainIn) -> Any:
    """No new work for a worker, or work again; what it runs goes on."""
    require_fleet_operator(request)
    worker = get_object_or_404(Worker, pk=pk)
    return operations.drain_worker(worker=worker, on=body.on, user=request.user)


@router.post("/hosts/{int:pk}/drain", response=OperationOut, operation_id="drain_host")
def drain_host(request: MemberRequest, pk: int, body: DrainIn) -> Any:
    """The same for all workers of a host."""
    require_fleet_operator(request)
    host = get_object_or_404(Host, pk=pk)
    return operations.drain_host(host=host, on=body.on, user=request.user)


@router.post("/hosts", response={201: InvitationOut}, operation_id="invite_host")
def invite_host(request: MemberRequest, body: InviteIn) -> Any:
    """A token with which hosts join over HTTPS, and the command to run there, which asks for it."""
    require_fleet_admin(request)
    server = settings.HOSTS_URL
    if not server:
        raise Conflict("This installation takes no hosts: set DESKHAND_HOSTS_URL.")
    team = None if body.all_teams else member(request).team
    token = joining.make_token(
        user=request.user, roles=body.roles, team=team, hours=body.hours, most_hosts=body.hosts
    )
    command = joining.join_command(body.roles)
    return Status(201, {"server": server, "token": token, "command": command})


@router.post("/joined/{int:pk}/revoke", response={204: None}, operation_id="revoke_host")
def revoke_host(request: MemberRequest, pk: int) -> Any:
    """End the identity of a host that joined; what it ran is run again elsewhere."""
    require_fleet_admin(request)
    joining.revoke(host=get_object_or_404(JoinedHost, pk=pk, revoked_at=None), user=request.user)
    return Status(204, None)
