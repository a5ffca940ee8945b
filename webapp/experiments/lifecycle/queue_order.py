"""The order of the queue of record, and why an experiment still waits in it."""

from dataclasses import dataclass

from django.db.models import QuerySet

from webapp.experiments.models import ACTIVE_STATUSES, Experiment, ExperimentStatus
from webapp.fleet.models import Worker, WorkerStatus
from webapp.lib.disk_room import shortages


def waiting_experiments() -> QuerySet[Experiment]:
    """Queued experiments, the next one first: the one owner of the order."""
    waiting = Experiment.objects.filter(status=ExperimentStatus.QUEUED)
    return waiting.order_by("-priority", "queue_order", "id")


def queue_in_order() -> list[Experiment]:
    """Waiting experiments in the order in which they will run."""
    return list(waiting_experiments().select_related("owner"))


def first_waiting() -> Experiment | None:
    """The experiment that a free gpu worker takes next."""
    return waiting_experiments().first()


@dataclass(frozen=True)
class QueueState:
    """What decides how long a queued experiment waits; read once for a page of many."""

    num_gpu_workers: int
    running: tuple[int, ...]
    waiting: tuple[int, ...]
    """In the order in which they will run."""


def queue_state() -> QueueState:
    """Three small queries."""
    return QueueState(
        num_gpu_workers=Worker.objects.filter(queue="gpu", status=WorkerStatus.ONLINE).count(),
        running=tuple(Experiment.objects.filter(status__in=ACTIVE_STATUSES).values_list("pk", flat=True)),
        waiting=tuple(waiting_experiments().values_list("pk", flat=True)),
    )


def why_waiting(experiment: Experiment, state: QueueState | None = None) -> str:
    """Why a queued experiment does not run yet, in words."""
    if experiment.status != ExperimentStatus.QUEUED:
        return ""
    if found := shortages():
        return f"Waits for disk space: {'; '.join(map(str, found))}."
    state = state or queue_state()
    if not state.num_gpu_workers:
        return "No gpu worker is online. Start one with `make up` or on a GPU host."
    # It may have left the queue since its row was read.
    ahead = state.waiting.index(experiment.pk) if experiment.pk in state.waiting else 0
    if not state.running and ahead == 0:
        return "Starts in a moment."
    workers = (
        "the gpu worker" if state.num_gpu_workers == 1 else f"one of {state.num_gpu_workers} gpu workers"
    )
    parts = []
    if state.running:
        parts.append(" and ".join(f"#{pk}" for pk in state.running) + " running")
    if ahead:
        parts.append(f"{ahead} ahead in the queue")
    return f"Waits for {workers}: " + ", ".join(parts) + "."
