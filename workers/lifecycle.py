"""What a worker process does around its jobs: announces itself, sends heartbeats, reports its end."""

import gc
import logging
import threading
from typing import Any

from celery.signals import celeryd_after_setup, worker_ready, worker_shutdown
from django.db import close_old_connections
from kombu.exceptions import OperationalError

from workers import identity, stopping, worker_row
from workers.reports.current import reports
from workers.reports.repeated_step import RepeatedStep

log = logging.getLogger(__name__)

_stopping = threading.Event()
_consumes = True
"""Whether Celery fetches jobs for this process; not while it is drained."""


@celeryd_after_setup.connect
def _announce(sender: str, instance: Any, **_: Any) -> None:
    queue = next(iter(instance.app.amqp.queues.consume_from), "env")
    slots = int(instance.concurrency or 1) if queue == "env" else 1
    identity.announce(identity.Identity(name=sender, queue=queue, slots=slots))
    for further in worker_row.queues()[1:]:
        instance.app.amqp.queues.select_add(further)
    if queue == "gpu":
        from workers.gpu.child_processes import claim_name
        from workers.processes.record_owners import OwnerLives

        try:
            claim_name()
        except OwnerLives as error:
            raise SystemExit(str(error)) from error


@worker_ready.connect
def _start_threads(**_: Any) -> None:
    if identity.current().queue == "gpu":
        from workers.gpu.child_processes import sweep_orphans

        sweep_orphans()
    worker_row.wait_until_recorded()
    RepeatedStep(
        "heartbeat", beat, worker_row.BEAT_S, stopping=_stopping, at_fault=stopping.end_process
    ).start()
    if identity.current().queue == "gpu":
        from workers.gpu import checkpoint_exports, checkpoint_uploads, gpu_use

        gpu_use.announce_gpus(identity.current().name)
        gpu_use.announce_for_ever(identity.current().name, _stopping)
        checkpoint_exports.start(_stopping)
        checkpoint_uploads.start(_stopping)
    if identity.current().queue == "env":
        from workers.env.rented_desktops import gateways_in_use, trajectory_keys
        from workers.environments.gateway import delete_unused_sandboxes
        from workers.fleet import desk_host_mirror

        desk_host_mirror.start(_stopping)
        delete_unused_sandboxes.start(_stopping, gateways_in_use, trajectory_keys)
        from workers.env import trajectory_job  # noqa: F401  what every job imports
    close_old_connections()  # this thread waits from here on, with what others of its process can use
    # What is imported stays for good: without it a full collection stops the slots for no tenths of a second.
    gc.collect()
    gc.freeze()


@worker_shutdown.connect
def _report_end(**_: Any) -> None:
    _stopping.set()
    worker_row.end()
    if identity.current().queue == "env":
        from workers.env.slots import release_all

        release_all()


def beat() -> None:
    """One heartbeat for the worker and all that it runs."""
    is_draining = worker_row.beat()
    if identity.current().queue == "env":
        from workers.env.running_trajectories import all_held

        reports().beat_trajectories(all_held())
    follow_drain(is_draining)


def follow_drain(is_draining: bool) -> None:
    """Stop fetching jobs while drained; one that was fetched already is handed back when it is claimed."""
    global _consumes
    if is_draining is not _consumes:
        return
    from workers.app import app

    me = identity.current()
    change = app.control.cancel_consumer if is_draining else app.control.add_consumer
    try:
        for queue in worker_row.queues():
            change(queue, destination=[me.name])
    except OperationalError as error:
        log.warning("cannot tell Celery to drain, trying again: %s", error)
        return
    _consumes = not is_draining
    log.info("drained: takes nothing new" if is_draining else "takes work again")
