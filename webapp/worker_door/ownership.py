"""Whether what a joined host names is its own: each argument of its calls is checked here, by its type.

The installation's own workers are not checked: `caller` is "" for them.
"""

import re
from collections.abc import Callable, Iterable
from typing import Any

from django.db.models import Q, QuerySet

from training.contracts.types import TrajectoryStatus
from webapp.experiments.models import Attempt, CheckpointExport, CheckpointRecord, Experiment
from webapp.fleet.models import Operation, Worker
from webapp.lib.remote_calls import NotYours, Owned, RemoteCall, caller, served_team
from webapp.lib.statements.short_statements import first_row
from webapp.screens.models import Control
from webapp.trajectories.models import Trajectory

SCORED = (TrajectoryStatus.TERMINATED, TrajectoryStatus.TRUNCATED)
RUN_BY = """
SELECT trajectory.status, trajectory.team_id, worker.host, worker.is_joined
FROM trajectories_trajectory AS trajectory
LEFT JOIN fleet_worker AS worker ON worker.id = trajectory.worker_id
WHERE trajectory.id = %s
"""
"""Asked with every report: Django takes longer to write it than a database to answer."""


def answer(call: RemoteCall, body: bytes, roles: Iterable[str], checked: set[tuple[Owned, Any]]) -> Any:
    """Do what a joined host of these roles sends as JSON, when all that it names is its own.

    `checked`: what was found to be its own in this transaction, which changes none of it.
    Raises NotYours, pydantic's ValidationError, and what the call raises.
    """
    call.require_role(roles)
    values = call.arguments.model_validate_json(body)
    for named in [(kind, getattr(values, name)) for name, kind in call.owned.items()]:
        if named not in checked:
            CHECKS[named[0]](named[1])
            checked.add(named)
    return call.function(**{name: getattr(values, name) for name in call.arguments.model_fields})


def own_workers() -> QuerySet[Worker]:
    """The rows of the calling joined host's workers."""
    return Worker.objects.filter(host=caller.get(), is_joined=True)


def require_host(name: str) -> None:
    """Raise NotYours when a joined host speaks for another one."""
    if (host := caller.get()) and host != name:
        raise NotYours(f"{host} speaks for {name}")


def require_worker(*names: str) -> None:
    """Raise NotYours unless one of these is a worker of the joined host that asks."""
    host = caller.get()
    if host and not own_workers().filter(name__in=names).exists():
        raise NotYours(f"{', '.join(names)}: no worker of {host}")


def require_own_name(worker: str, queue: str) -> None:
    """Raise NotYours unless a joined host's new worker has a name of its own: QUEUE, number @ its name."""
    if (host := caller.get()) and not re.fullmatch(rf"{queue}[0-9]{{1,3}}@{re.escape(host)}", worker):
        raise NotYours(
            f"worker {worker}: those of {host} in queue {queue} are called {queue}1@{host} and so on"
        )


def _require_served(team_id: int) -> None:
    """Raise NotYours for a row of a team that the calling host does not work for."""
    if served_team.get() not in (None, team_id):
        raise NotYours(f"{caller.get()} does not work for team {team_id}")


def require_trajectory(trajectory_id: int) -> TrajectoryStatus:
    """Its status. Raises NotYours when the caller's workers do not run it, Trajectory.DoesNotExist."""
    row, caller_host = first_row(RUN_BY, [trajectory_id]), caller.get()
    if row is None:
        raise Trajectory.DoesNotExist(f"there is no trajectory {trajectory_id}")
    status, team_id, host, is_joined = row
    if caller_host and (host != caller_host or not is_joined):
        raise NotYours(f"trajectory {trajectory_id} is not run by {caller_host}")
    _require_served(team_id)
    return TrajectoryStatus(status)


def _require_open_trajectory(trajectory_id: int) -> None:
    """As `require_trajectory`. Raises NotYours for one that has its score, too: it is what it was."""
    if require_trajectory(trajectory_id) in SCORED:
        raise NotYours(f"trajectory {trajectory_id} has been scored")


def _require_control(control_id: int) -> None:
    require_trajectory(Control.objects.get(pk=control_id).trajectory_id)


def _require_operation(operation_id: int) -> None:
    require_host(Operation.objects.get(pk=operation_id).host)


def _require_attempt(attempt_id: int) -> None:
    row = Attempt.objects.select_related("experiment").get(pk=attempt_id)
    require_worker(row.worker_name)
    _require_served(row.experiment.team_id)


def _require_gang(attempt_id: int) -> None:
    """Raise NotYours unless a worker of the caller's holds the attempt, or is a further host of its gang."""
    row = Attempt.objects.select_related("experiment").get(pk=attempt_id)
    _require_served(row.experiment.team_id)
    require_worker(row.worker_name, *row.gang.values_list("worker_name", flat=True))


def took_part(checkpoint_id: int) -> bool:
    """Whether the caller's workers had an attempt at the checkpoint's experiment."""
    if not caller.get():
        return True
    mine, team = own_workers().values("name"), served_team.get()
    rows = Attempt.objects.filter(experiment__checkpoints=checkpoint_id, worker_name__in=mine)
    return (rows if team is None else rows.filter(experiment__team=team)).exists()


def wrote(checkpoint_id: int) -> bool:
    """Whether the caller's worker saved it: another host's copy is not the caller's to vouch for.

    Of a checkpoint that its own attempt did not report, every host that took part may speak.
    """
    if not caller.get():
        return True
    saved_by = CheckpointRecord.objects.select_related("attempt").get(pk=checkpoint_id).attempt
    is_mine = saved_by is None or own_workers().filter(name=saved_by.worker_name).exists()
    return is_mine and took_part(checkpoint_id)


def _require_wrote(checkpoint_id: int) -> None:
    if not wrote(checkpoint_id):
        raise NotYours(f"checkpoint {checkpoint_id} is not of {caller.get()}")


def _require_export(export_id: int) -> None:
    row = CheckpointExport.objects.select_related("checkpoint__experiment").get(pk=export_id)
    require_host(row.host)
    _require_served(row.checkpoint.experiment.team_id)


def _require_waiting_export(export_id: int) -> None:
    row = CheckpointExport.objects.get(pk=export_id)
    if not took_part(row.checkpoint_id):
        raise NotYours(f"export {export_id} is not of {caller.get()}")


def _require_team_trajectory(trajectory_id: int) -> None:
    _require_served(Trajectory.objects.only("team").get(pk=trajectory_id).team_id)


def _require_team_experiment(experiment_id: int) -> None:
    _require_served(Experiment.objects.only("team").get(pk=experiment_id).team_id)


def _require_team_attempt(attempt_id: int) -> None:
    _require_team_experiment(Attempt.objects.get(pk=attempt_id).experiment_id)


CHECKS: dict[Owned, Callable[[Any], object]] = {
    Owned.HOST: require_host,
    Owned.WORKER: require_worker,
    Owned.TRAJECTORY: require_trajectory,
    Owned.OPEN_TRAJECTORY: _require_open_trajectory,
    Owned.CONTROL: _require_control,
    Owned.OPERATION: _require_operation,
    Owned.ATTEMPT: _require_attempt,
    Owned.GANG_ATTEMPT: _require_gang,
    Owned.CHECKPOINT: _require_wrote,
    Owned.EXPORT: _require_export,
    Owned.WAITING_EXPORT: _require_waiting_export,
    Owned.TEAM_TRAJECTORY: _require_team_trajectory,
    Owned.TEAM_EXPERIMENT: _require_team_experiment,
    Owned.TEAM_ATTEMPT: _require_team_attempt,
}


def run_by_caller(rows: QuerySet[Trajectory]) -> QuerySet[Trajectory]:
    """Those that the calling joined host's workers run; all of them for the installation's own."""
    if not caller.get():
        return rows
    team = served_team.get()
    return rows.filter(worker__in=own_workers(), **({} if team is None else {"team": team}))


def own_of(trajectory_ids: list[int]) -> list[int]:
    """Those that the caller's workers run."""
    if not caller.get():
        return trajectory_ids
    return list(run_by_caller(Trajectory.objects.filter(pk__in=trajectory_ids)).values_list("pk", flat=True))


def works_for(*team_ids: int) -> bool:
    """Whether the caller works or has worked for one of the teams; workers of this machine may for all."""
    if not caller.get():
        return True
    team_ids = tuple(team for team in team_ids if served_team.get() in (None, team))
    if Trajectory.objects.filter(worker__in=own_workers(), team_id__in=team_ids).exists():
        return True
    workers = own_workers().filter(queue="gpu").values("name")
    running = Attempt.objects.filter(ended_at=None, experiment__team_id__in=team_ids)
    return running.filter(Q(worker_name__in=workers) | Q(gang__worker_name__in=workers)).exists()


def require_team(*team_ids: int) -> None:
    """Raise NotYours unless a joined host has worked for one of the teams."""
    if not works_for(*team_ids):
        raise NotYours(f"{caller.get()} has run nothing of team {', '.join(map(str, team_ids))}")
