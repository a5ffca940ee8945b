"""Nodes of a cluster's job that wait for each other: the first one leads, the others look for its call."""

from dataclasses import dataclass

from webapp.experiments.models import ACTIVE_STATUSES, Attempt, Experiment, ExperimentStatus, GangMember
from webapp.fleet.models import Worker, WorkerStatus


@dataclass(frozen=True, slots=True)
class Call:
    """What a node is needed for."""

    attempt_id: int
    host: int


def are_nodes_here(experiment_id: int) -> bool:
    """Whether every other node of its job has come; True where it has one."""
    placed = Experiment.objects.values_list("placed_members", flat=True).get(pk=experiment_id)
    names = {one["worker"] for one in placed}
    here = Worker.objects.filter(name__in=names, status=WorkerStatus.ONLINE)
    return here.count() == len(names)


def own_call(experiment_id: int, number: int, worker_name: str) -> Call | None:
    """What the leader of this attempt has called a node for; None as long as it has not."""
    called = GangMember.objects.filter(
        attempt__experiment=experiment_id,
        attempt__number=number,
        attempt__ended_at=None,
        worker_name=worker_name,
    ).first()
    return Call(called.attempt_id, called.host) if called else None


def may_begin(experiment_id: int, number: int) -> bool:
    """False once the attempt has ended, or people have stopped its experiment before it began."""
    if Attempt.objects.filter(experiment=experiment_id, number=number).exclude(ended_at=None).exists():
        return False
    statuses = {*ACTIVE_STATUSES, ExperimentStatus.QUEUED}
    return Experiment.objects.filter(pk=experiment_id, status__in=statuses).exists()
