"""What a machine's mirror writes and asks: its desk host's report, drains, operations, demand."""

from dataclasses import dataclass

from webapp.fleet.desk_host_states import DesktopFigures as DesktopFigures
from webapp.fleet.desk_host_states import DesktopState as DesktopState
from webapp.fleet.desk_host_states import FailedBoot as FailedBoot
from webapp.fleet.desk_host_states import HostChanges as HostChanges
from webapp.fleet.desk_host_states import HostState as HostState
from webapp.fleet.models import DesktopPhase as DesktopPhase
from webapp.fleet.models import Operation, OperationStatus
from webapp.fleet.models import Verb as Verb
from webapp.fleet.reported_values import HostValues as HostValues
from webapp.fleet.services import desk_hosts, history, mirror_claims, operations
from webapp.fleet.services.mirror_claims import HostNow as HostNow
from webapp.lib.remote_calls import OwnHost, OwnOperation, OwnTrajectory, OwnWorker, env_host, served_team
from webapp.trajectories.queries import desktop_demand
from webapp.trajectories.services import trajectories
from webapp.worker_door.ownership import own_of


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


@env_host.request
def claim_mirror(host: OwnHost, by: OwnWorker, again: bool) -> HostNow | None:
    """Worker `by` mirrors `host` from now on, or still does; None when another one does.

    `again`: it did in its last round, and the desk host answered.
    """
    return mirror_claims.claim_mirror(host=host, by=by, again=again, queued=desktop_demand.queued_sql())


@env_host.request
def wanted_desktops(host: OwnHost) -> list[DesktopsWanted]:
    """What queued trajectories want, for a machine that has free slots."""
    wanted = desktop_demand.waiting_desktops(served_team.get())
    return [DesktopsWanted(*kind, count) for kind, count in wanted.items()]


@env_host.request
def hand_over_mirror(host: OwnHost, by: OwnWorker) -> None:
    mirror_claims.hand_over_mirror(host=host, by=by)


@env_host.request
def record_problem(host: OwnHost, problem: str) -> None:
    """The desk host does not answer."""
    desk_hosts.record_problem(host=host, problem=problem)


@env_host.request
def record_host(host: OwnHost, state: HostState) -> None:
    """Everything of a report."""
    desk_hosts.record_host(host=host, state=state)


@env_host.request
def record_changes(host: OwnHost, by: OwnWorker, changes: HostChanges) -> bool:
    """What differs from the last report of `by`; False when it has to report everything."""
    return desk_hosts.record_changes(host=host, by=by, changes=changes)


@env_host.request
def sample_host(host: OwnHost) -> None:
    """One point of the history charts."""
    history.sample_host(host=host)


@env_host.request
def forget_old() -> None:
    desk_hosts.forget_old()


@env_host.request
def take_operations(host: OwnHost) -> list[AskedOperation]:
    """Claim what is asked of a host's desktops, oldest first."""
    return [
        AskedOperation(asked.pk, asked.verb, asked.target, asked.reason, asked.asked_by_name)
        for asked in operations.take_operations(host=host)
    ]


@env_host.request
def end_operation(operation_id: OwnOperation, outcome: str, is_done: bool) -> None:
    """Say what became of it."""
    operation = Operation.objects.get(pk=operation_id)
    status = OperationStatus.DONE if is_done else OperationStatus.FAILED
    operations.end_operation(operation=operation, status=status, outcome=outcome)


@env_host.request
def live_on_desktop(name: str) -> list[int]:
    """Trajectories on a desktop; a joined host hears of its own."""
    live = trajectories.live_on_desktop(name)
    return own_of(live)


@env_host.request
def take_away(trajectory_id: OwnTrajectory, error: str) -> bool:
    return trajectories.take_desktop_away(trajectory_id=trajectory_id, error=error)
