"""This worker's own row in the database: its heartbeat, its end, the queues that it serves."""

import time

from webapp.lib.heartbeat_age import touch_beat_file
from webapp.lib.outage_retries import patient
from webapp.lib.send_job import own_queue
from webapp.worker_door.joined_hosts.contract_version import version
from webapp.worker_door.workers import beat_worker, stop_worker
from workers import identity
from workers.reports.current import reports

BEAT_S = 2.0


def beat() -> bool:
    """Record that this worker is alive; True while it is being drained."""
    me = identity.current()
    is_draining = reports().request(
        beat_worker, me.name, me.queue, me.host, me.pid, me.slots, version(), time.time()
    )
    touch_beat_file()
    return is_draining


@patient
def wait_until_recorded() -> None:
    """The first heartbeat, as soon as the database takes it."""
    beat()


def end() -> None:
    """Record that this worker stops."""
    me = identity.current()
    reports().request(stop_worker, me.name, me.pid)


def queues() -> list[str]:
    """The common queue and an own one.

    Env workers serve what only their machine can run: branches start where their snapshots lie. A gpu worker
    serves what was placed on its GPUs.
    """
    me = identity.current()
    return [me.queue, own_queue(me.queue, me.host if me.queue == "env" else me.name)]
