"""Writes that follow a cluster's scheduler: where an experiment was queued there, and how its job went."""

from django.db import transaction
from django.utils import timezone

from webapp.experiments.models import AttemptStatus, Experiment, ExperimentStatus
from webapp.experiments.services.attempts import claim_experiment, requeue_after_crash
from webapp.experiments.services.statuses import change_status, publish_status


def worker_of(job: str, node: int = 0) -> str:
    """Name of the gpu worker that a node of a job is; the first one leads."""
    return f"gpu@{job}-n{node}" if node else f"gpu@{job}"


def record_submitted(experiment_id: int, job: str, num_nodes: int = 1) -> bool:
    """It waits in the cluster from now on; False when it does not wait here any more."""
    others = [{"worker": worker_of(job, node), "keys": []} for node in range(1, num_nodes)]
    waiting = Experiment.objects.filter(pk=experiment_id, status=ExperimentStatus.QUEUED, dispatched_at=None)
    return bool(
        waiting.update(
            dispatched_at=timezone.now(), placed_worker=worker_of(job), placed_keys=[], placed_members=others
        )
    )


def record_state(experiment: Experiment, message: str) -> None:
    """Show the scheduler's own words on its page; says nothing twice."""
    if experiment.message == message:
        return
    with transaction.atomic():
        mine = Experiment.objects.filter(
            pk=experiment.pk, status=ExperimentStatus.QUEUED, placed_worker=experiment.placed_worker
        )
        if mine.update(message=message):
            publish_status(experiment.pk, ExperimentStatus.QUEUED, message)


def queue_again(experiment: Experiment) -> None:
    """Its job went before it claimed anything, through no fault of its own."""
    mine = Experiment.objects.filter(
        pk=experiment.pk, status=ExperimentStatus.QUEUED, placed_worker=experiment.placed_worker
    )
    mine.update(dispatched_at=None)


def pause_stopped(experiment: Experiment, message: str) -> None:
    """A person ended its job by the scheduler's own command: it waits until a person resumes it."""
    change_status(
        experiment.pk,
        ExperimentStatus.PAUSED,
        sources={ExperimentStatus.QUEUED},
        message=message,
        dispatched_at=None,
        placed_worker="",
    )


def fail_unclaimed(experiment: Experiment, number: int, reason: str) -> None:
    """Its job ended before it claimed the experiment: another one would end the same way."""
    claimed = claim_experiment(
        experiment_id=experiment.pk, attempt_number=number, worker_name=experiment.placed_worker
    )
    if claimed:
        requeue_after_crash(attempt=claimed, status=AttemptStatus.CRASHED, reason=reason, max_restarts=0)
