"""Waiting experiments become jobs of a cluster's own scheduler, one per attempt: nothing is held while
nothing is queued.

The database stays the queue of record. What the scheduler says of a job is shown while it waits; once the job
has claimed its experiment, all goes as with any gpu worker.
"""

import logging
import threading

from django.conf import settings
from django.db import DatabaseError, close_old_connections

from webapp.dispatcher.launchers.contract import ClusterJob, JobRequest, Launcher, LauncherError, Phase
from webapp.experiments.models import ACTIVE_STATUSES, Experiment
from webapp.experiments.placement.pool_state import demand_of
from webapp.experiments.queries.attempts import next_attempt_number
from webapp.experiments.queries.queue import MAX_PRIORITY, waiting_experiments
from webapp.experiments.services import cluster_jobs
from webapp.lib.disk_room import shortages

log = logging.getLogger(__name__)
ROUND_S = 3.0
MOST_WAITING = 100
"""Jobs of ours in the scheduler's queue; experiments behind them keep their order here."""


class ClusterRounds:
    """A thread beside the ticks: a scheduler may take seconds to answer."""

    def __init__(self, launcher: Launcher) -> None:
        self._launcher = launcher
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._forever, name="cluster jobs", daemon=True)

    def start(self) -> None:
        """Begin. Raises LauncherError."""
        self._launcher.check()
        self._thread.start()

    def stop(self) -> None:
        """What was queued stays queued."""
        self._stopping.set()

    def _forever(self) -> None:
        said = ""
        while not self._stopping.wait(ROUND_S):
            try:
                close_old_connections()
                go_round(self._launcher)
                said = ""
            except (LauncherError, DatabaseError) as error:
                if said != str(error):  # a scheduler may be away for hours
                    log.warning("cluster: %s; trying again", error)
                said = str(error)


def go_round(launcher: Launcher) -> None:
    """Follow the jobs that are there, then queue those that are missing. Raises LauncherError."""
    jobs = launcher.jobs()
    sent = {row.placed_worker: row for row in waiting_experiments().exclude(dispatched_at=None)}
    by_worker = {cluster_jobs.worker_of(name): job for name, job in jobs.items()}
    for worker, row in sent.items():
        _follow(launcher, row, by_worker.get(worker))
    active = Experiment.objects.filter(status__in=ACTIVE_STATUSES).values_list("placed_worker", flat=True)
    wanted = {*sent, *active}
    launcher.cancel(
        [job.name for worker, job in by_worker.items() if job.phase == Phase.WAITING and worker not in wanted]
    )
    if not shortages():
        _submit_missing(launcher, by_worker)


def _follow(launcher: Launcher, row: Experiment, job: ClusterJob | None) -> None:
    """An experiment whose job has not claimed it yet."""
    name = row.placed_worker.partition("@")[2]
    if job is None or job.phase == Phase.TAKEN:
        cluster_jobs.queue_again(row)
    elif job.phase in (Phase.WAITING, Phase.RUNNING):
        cluster_jobs.record_state(row, f"{name} {job.state}")
    elif job.phase == Phase.STOPPED:
        cluster_jobs.pause_stopped(row, _stopped(job))
    else:
        reason = f"{name} ended before it began ({job.state}):\n{launcher.last_lines(name)}"
        cluster_jobs.fail_unclaimed(row, next_attempt_number(row.pk), reason)


def _stopped(job: ClusterJob) -> str:
    return f"Paused: its job {job.name} was ended in the cluster ({job.state}). Resume queues another one."


def _submit_missing(launcher: Launcher, by_worker: dict[str, ClusterJob]) -> None:
    room = MOST_WAITING - sum(job.phase == Phase.WAITING for job in by_worker.values())
    for row in waiting_experiments().filter(dispatched_at=None)[: max(room, 0)]:
        last = by_worker.get(row.placed_worker)
        if last is not None and last.phase == Phase.STOPPED:
            cluster_jobs.pause_stopped(row, _stopped(last))
        elif last is None or last.phase != Phase.RUNNING:  # one that leaves has its folder still open
            _submit(launcher, row)


def _submit(launcher: Launcher, row: Experiment) -> None:
    """Queue a job for it; what the scheduler has against it is shown, and keeps no others."""
    try:
        wanted = _request(row)
        job = launcher.submit(wanted)
    except LauncherError as error:
        cluster_jobs.record_state(row, str(error))
        return
    if cluster_jobs.record_submitted(row.pk, job, wanted.num_nodes):
        log.info("experiment %s is queued as %s", row.pk, job)
    else:  # cancelled meanwhile
        launcher.cancel([job])


def _request(row: Experiment) -> JobRequest:
    demand = demand_of(row.settings, has_gpus=True)
    if demand.num_hosts > 1 and not settings.TRAIN_NETWORK:
        raise LauncherError("DESKHAND_TRAIN_NETWORK: name the network of the nodes, by which ranks meet")
    return JobRequest(
        experiment_id=row.pk,
        attempt=next_attempt_number(row.pk),
        num_gpus=demand.num_places if demand.needs_gpus else 0,
        num_nodes=demand.num_hosts,
        nice=MAX_PRIORITY - row.priority,
    )
