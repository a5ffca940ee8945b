"""The hosts of an attempt that is spread over several: called by the first, each tells where it listens."""

from django.conf import settings
from kombu.exceptions import OperationalError

from webapp.experiments.models import Attempt
from webapp.experiments.queries.gangs import Gathering as Gathering
from webapp.experiments.queries.gangs import called_as
from webapp.experiments.queries.gangs import gathering as gathering
from webapp.experiments.services import gangs
from webapp.lib.remote_calls import (
    NotYours,
    OwnAttempt,
    OwnWorker,
    TeamAttempt,
    caller,
    gpu_host,
)
from webapp.lib.send_job import JOIN_GANG, send_job
from webapp.worker_door.attempts import HeldAttempt, attempt_of, held
from webapp.worker_door.ownership import require_worker


@gpu_host.patient_request
def call_gang(attempt_id: OwnAttempt, workers: list[str], secret: str) -> str:
    """Send the others of `workers`, in the order of their ranks, their jobs; "" or why they could not be
    called. `secret` marks the folder of checkpoints that they share."""
    row = attempt_of(attempt_id)
    _require_placed(row, workers)
    if row.gang.exists():  # an answer was lost
        return ""
    gangs.call_gang(attempt=row, workers=workers, secret=secret)
    if settings.GPU_LAUNCHER != "celery":  # they look for their call themselves
        return ""
    try:
        for host, name in enumerate(workers[1:], start=1):
            send_job(JOIN_GANG, row.pk, host, only=name)
    except OperationalError as error:
        return f"its other hosts could not be called: {error}"
    return ""


def _require_placed(row: Attempt, workers: list[str]) -> None:
    """Raise NotYours when a joined host calls others than those that its experiment was placed on."""
    placed = {row.worker_name, *(one["worker"] for one in row.experiment.placed_members)}
    if caller.get() and not set(workers) <= placed:
        raise NotYours(f"{', '.join(sorted(set(workers) - placed))}: not placed for attempt {row.pk}")


@gpu_host.patient_request
def come(attempt_id: TeamAttempt, host: int, worker_name: OwnWorker, address: str) -> HeldAttempt | None:
    """A host is there; None when it was not called, has come to another address, or the attempt has ended."""
    row = gangs.join_gang(attempt_id=attempt_id, host=host, worker_name=worker_name, address=address)
    return held(row) if row else None


@gpu_host.patient_request
def leave(attempt_id: TeamAttempt, host: int, problem: str, is_left_alone: bool) -> None:
    """A host cannot go on; its first reason counts. `is_left_alone`: others did not come."""
    require_worker(*called_as(attempt_id=attempt_id, host=host))
    gangs.leave_gang(attempt_id=attempt_id, host=host, problem=problem, is_left_alone=is_left_alone)
