"""This worker's own row in the database: its heartbeat, its end, the queues that it serves."""

from __future__ import annotations

from webapp import __version__
from webapp.fleet import worker_reports
from webapp.fleet.models import Worker
from webapp.lib.patience import patient
from webapp.lib.send_job import queue_of_host
from workers import identity


def beat() -> Worker:
    """Record that this worker is alive; its row, which says whether it is being drained."""
    me = identity.current()
    return worker_reports.beat_worker(
        name=me.name,
        queue=me.queue,
        host=me.host,
        pid=me.pid,
        slots=me.slots,
        version=__version__,
    )


@patient
def wait_until_recorded() -> None:
    """The first heartbeat, as soon as the database takes it."""
    beat()


def find() -> Worker:
    """This worker's row, made when there is none."""
    return Worker.objects.filter(name=identity.current().name).first() or beat()


def end() -> None:
    """Record that this worker stops."""
    me = identity.current()
    worker_reports.stop_worker(name=me.name, pid=me.pid)


def queues() -> list[str]:
    """Env workers also serve what only their machine can run: branches start where their snapshots lie."""
    me = identity.current()
    return [me.queue, queue_of_host(me.queue, me.host)] if me.queue == "env" else [me.queue]
