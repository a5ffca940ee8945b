"""What a machine's mirror writes and asks: its desk host's report, drains, operations, demand."""

from __future__ import annotations

from dataclasses import dataclass

from webapp.fleet import desk_host_reports, env_capacity, operator_requests
from webapp.fleet.desk_host_reports import DesktopState, HostState
from webapp.fleet.models import Operation, OperationStatus
from webapp.trajectories import desktop_demand
from webapp.trajectories.lifecycle import desktop_taken_away
from webapp.worker_door.rows import own_trajectory, question, require_host


@dataclass(frozen=True, slots=True)
class AskedOperation:
    """What an operator asked of a desktop."""

    pk: int
    verb: str
    target: str
    reason: str
    asked_by_name: str


@dataclass(frozen=True, slots=True)
class DesktopsWanted:
    """Queued trajectories that want one kind of desktop."""

    provider: str
    width: int
    height: int
    count: int


@dataclass(frozen=True, slots=True)
class HostOrders:
    """What a machine's desk host is to be told, with each round of its mirror."""

    is_draining: bool
    num_slots: int
    """Of its env workers."""
    wanted: list[DesktopsWanted]


@question
def claim_mirror(host: str, by: str) -> HostOrders | None:
    """Worker `by` mirrors `host` from now on, or still does; None when another one does."""
    require_host(host)
    if not desk_host_reports.claim_mirror(host=host, by=by):
        return None
    wanted = desktop_demand.waiting_desktops().items()
    return HostOrders(
        is_draining=env_capacity.is_host_draining(host),
        num_slots=env_capacity.count_slots_of_host(host),
        wanted=[DesktopsWanted(*kind, count) for kind, count in wanted],
    )


@question
def hand_over_mirror(host: str, by: str) -> None:
    require_host(host)
    desk_host_reports.hand_over_mirror(host=host, by=by)


@question
def record_problem(host: str, problem: str) -> None:
    """The desk host does not answer."""
    require_host(host)
    desk_host_reports.record_problem(host=host, problem=problem)


@question
def record_host(host: str, state: HostState) -> None:
    """Everything of a report."""
    require_host(host)
    desk_host_reports.record_host(host=host, state=state)


@question
def record_desktops(host: str, desktops: list[DesktopState], providers: list[str]) -> None:
    """What people do not want to wait for of a report."""
    require_host(host)
    desk_host_reports.record_desktops(host=host, desktops=desktops, providers=providers, with_figures=False)


@question
def sample_host(host: str) -> None:
    """One point of the history charts."""
    require_host(host)
    desk_host_reports.sample_host(host=host)


@question
def forget_old() -> None:
    desk_host_reports.forget_old()


@question
def take_operations(host: str) -> list[AskedOperation]:
    """Claim what is asked of a host's desktops, oldest first."""
    require_host(host)
    return [
        AskedOperation(asked.pk, asked.verb, asked.target, asked.reason, asked.asked_by_name)
        for asked in operator_requests.take_operations(host=host)
    ]


@question
def end_operation(operation_id: int, outcome: str, is_done: bool) -> None:
    """Say what became of it."""
    operation = Operation.objects.get(pk=operation_id)
    require_host(operation.host)
    status = OperationStatus.DONE if is_done else OperationStatus.FAILED
    operator_requests.end_operation(operation=operation, status=status, outcome=outcome)


@question
def live_on_desktop(name: str) -> list[int]:
    return desktop_taken_away.live_on_desktop(name)


@question
def take_away(trajectory_id: int, error: str) -> bool:
    own_trajectory(trajectory_id)
    return desktop_taken_away.take_away(trajectory_id=trajectory_id, error=error)
