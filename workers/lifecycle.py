"""What a worker process does around its jobs: announces itself, beats, says goodbye."""

import logging
import threading
from typing import Any

from celery.signals import celeryd_after_setup, worker_ready, worker_shutdown
from django.db import DatabaseError, close_old_connections
from kombu.exceptions import OperationalError

from webapp import __version__
from webapp.fleet.worker_reports import beat_worker, stop_worker
from webapp.lib.send_job import queue_of_host
from webapp.trajectories.lifecycle import beat_trajectories
from workers import identity

log = logging.getLogger(__name__)
BEAT_S = 2.0

_running: set[int] = set()
"""Trajectories that this process holds."""
_stopping = threading.Event()
_consumes = True
"""Whether Celery fetches jobs for this process; not while it is drained."""


def hold(trajectory_id: int) -> None:
    """Beat for this trajectory from now on."""
    _running.add(trajectory_id)


def let_go(trajectory_id: int) -> None:
    _running.discard(trajectory_id)


@celeryd_after_setup.connect
def _announce(sender: str, instance: Any, **_: Any) -> None:
    queue = next(iter(instance.app.amqp.queues.consume_from), "env")
    slots = int(instance.concurrency or 1) if queue == "env" else 1
    identity.announce(identity.Identity(name=sender, queue=queue, slots=slots))
    if queue == "env":  # what only this machine can run: branches start where their snapshots lie
        instance.app.amqp.queues.select_add(queue_of_host(queue, identity.current().host))


@worker_ready.connect
def _start_beating(**_: Any) -> None:
    if identity.current().queue == "gpu":
        from workers.gpu.child_processes import sweep_orphans

        sweep_orphans()
    beat()
    threading.Thread(target=_beat_forever, name="heartbeat", daemon=True).start()
    if identity.current().queue == "gpu":
        from workers.gpu import checkpoint_exports, gpu_use

        gpu_use.announce_gpus(identity.current().name)
        checkpoint_exports.start(_stopping)
    if identity.current().queue == "env":
        from workers.env import reporting
        from workers.environments.gateway import delete_unused_sandboxes
        from workers.fleet import mirror

        mirror.start(_stopping)
        delete_unused_sandboxes.start(_stopping, reporting.gateways_in_use, reporting.trajectory_keys)


@worker_shutdown.connect
def _say_goodbye(**_: Any) -> None:
    _stopping.set()
    me = identity.current()
    stop_worker(name=me.name, pid=me.pid)
    if me.queue == "env":
        from workers.env.slots import release_all

        release_all()


def beat() -> None:
    """One heartbeat for the worker and all that it runs."""
    me = identity.current()
    worker = beat_worker(
        name=me.name,
        queue=me.queue,
        host=me.host,
        pid=me.pid,
        slots=me.slots,
        version=__version__,
    )
    if _running:
        beat_trajectories(list(_running))
    follow_drain(worker.is_draining)


def follow_drain(is_draining: bool) -> None:
    """Stop fetching jobs while drained; one that was fetched already is handed back when it is claimed."""
    global _consumes
    if is_draining is not _consumes:
        return
    from workers.app import app

    me = identity.current()
    change = app.control.cancel_consumer if is_draining else app.control.add_consumer
    queues = [me.queue, queue_of_host(me.queue, me.host)] if me.queue == "env" else [me.queue]
    try:
        for queue in queues:
            change(queue, destination=[me.name])
    except OperationalError as error:
        log.warning("cannot tell Celery to drain, trying again: %s", error)
        return
    _consumes = not is_draining
    log.info("drained: takes nothing new" if is_draining else "takes work again")


def _beat_forever() -> None:
    while not _stopping.wait(BEAT_S):
        try:
            close_old_connections()
            beat()
        except DatabaseError as error:
            log.warning("heartbeat not recorded, trying again in %.0f s: %s", BEAT_S, error)
