"""What a machine's mirror writes and asks: its desk host's report, drains, operations, demand."""

from __future__ import annotations

from dataclasses import dataclass

from webapp.fleet import desk_host_reports, mirror_claim, operator_requests
from webapp.fleet.desk_host_states import HostChanges, HostState
from webapp.fleet.mirror_claim import HostNow
from webapp.fleet.models import Operation, OperationStatus
from webapp.trajectories import desktop_demand
from webapp.trajectories.lifecycle import desktop_taken_away
from webapp.worker_door.rows import env_host, own_of, own_trajectory, require_host, require_worker


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


@env_host.question
def claim_mirror(host: str, by: str, again: bool) -> HostNow | None:
    """Worker `by` mirrors `host` from now on, or still does; None when another one does.

    `again`: it did in its last round, and the desk host answered.
    """
    require_host(host)
    require_worker(by)
    return mirror_claim.claim_mirror(host=host, by=by, again=again, queued=desktop_demand.queued_sql())


@env_host.question
def wanted_desktops(host: str) -> list[DesktopsWanted]:
    """What queued trajectories want, for a machine that has free slots."""
    require_host(host)
    return [DesktopsWanted(*kind, count) for kind, count in desktop_demand.waiting_desktops().items()]


@env_host.question
def hand_over_mirror(host: str, by: str) -> None:
    require_host(host)
    mirror_claim.hand_over_mirror(host=host, by=by)


@env_host.question
def record_problem(host: str, problem: str) -> None:
    """The desk host does not answer."""
    require_host(host)
    desk_host_reports.record_problem(host=host, problem=problem)


@env_host.question
def record_host(host: str, state: HostState) -> None:
    """Everything of a report."""
    require_host(host)
    desk_host_reports.record_host(host=host, state=state)


@env_host.question
def record_changes(host: str, by: str, changes: HostChanges) -> bool:
    """What differs from what `by` told last; False when it has to tell everything."""
    require_host(host)
    return desk_host_reports.record_changes(host=host, by=by, changes=changes)


@env_host.question
def sample_host(host: str) -> None:
    """One point of the history charts."""
    require_host(host)
    desk_host_reports.sample_host(host=host)


@env_host.question
def forget_old() -> None:
    desk_host_reports.forget_old()


@env_host.question
def take_operations(host: str) -> list[AskedOperation]:
    """Claim what is asked of a host's desktops, oldest first."""
    require_host(host)
    return [
        AskedOperation(asked.pk, asked.verb, asked.target, asked.reason, asked.asked_by_name)
        for asked in operator_requests.take_operations(host=host)
    ]


@env_host.question
def end_operation(operation_id: int, outcome: str, is_done: bool) -> None:
    """Say what became of it."""
    operation = Operation.objects.get(pk=operation_id)
    require_host(operation.host)
    status = OperationStatus.DONE if is_done else OperationStatus.FAILED
    operator_requests.end_operation(operation=operation, status=status, outcome=outcome)


@env_host.question
def live_on_desktop(name: str) -> list[int]:
    """Trajectories on a desktop; a joined host hears of its own."""
    live = desktop_taken_away.live_on_desktop(name)
    return own_of(live)


@env_host.question
def take_away(trajectory_id: int, error: str) -> bool:
    own_trajectory(trajectory_id)
    return desktop_taken_away.take_away(trajectory_id=trajectory_id, error=error)
