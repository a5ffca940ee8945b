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
from webapp.fleet.services import mirror_claims, operations
from webapp.fleet.services.desk_hosts import forget_old as forget_old
from webapp.fleet.services.desk_hosts import record_changes as record_changes
from webapp.fleet.services.desk_hosts import record_host as record_host
from webapp.fleet.services.desk_hosts import record_problem as record_problem
from webapp.fleet.services.history import sample_host as sample_host
from webapp.fleet.services.mirror_claims import HostNow as HostNow
from webapp.fleet.services.mirror_claims import hand_over_mirror as hand_over_mirror
from webapp.lib.remote_calls import OwnHost, OwnOperation, OwnWorker, env_host, served_team
from webapp.trajectories.queries import desktop_demand
from webapp.trajectories.services.trajectories import live_on_desktop as trajectories_on_desktop
from webapp.trajectories.services.trajectories import take_away as take_away
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
    return own_of(trajectories_on_desktop(name))
